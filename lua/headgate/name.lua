-- A server name: the host that owns it and the certificate that it shows.
local _M = {}

local string_byte = string.byte
local string_sub = string.sub

local DOT, DASH, UNDERSCORE = 46, 45, 95


-- compile(unit, name) -> { name, host, owner, redirect, has_tls, certificate, covers }. Covers are the
-- names for which an alias for more than one has TLS.
function _M.compile(unit, name)
    if type(unit.host) ~= "string" then
        error("a name without a host", 0)
    end
    unit.name = name
    return unit
end


-- The wildcard that covers a name, or nil: one label of letters, digits,
-- dashes and underscores instead of the star.
function _M.wildcard(name)
    for i = 1, #name do
        local c = string_byte(name, i)
        if c == DOT then
            if i == 1 then
                return nil
            end
            return "*" .. string_sub(name, i)
        end
        local word = c >= 97 and c <= 122 or c >= 48 and c <= 57 or c >= 65 and c <= 90
            or c == DASH or c == UNDERSCORE
        if not word then
            return nil
        end
    end
    return nil
end


return _M
