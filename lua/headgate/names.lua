-- Finds the name unit for a name that a client sent. Hosts and certificates are looked
-- up separately: a name with a host but without a certificate uses the certificate of
-- the wildcard above it.
local name = require "headgate.name"
local units = require "headgate.units"

local _M = {}

local string_byte = string.byte
local string_find = string.find
local string_gsub = string.gsub
local string_lower = string.lower

-- The name unit of the default host.
local DEFAULT = "_"
_M.DEFAULT = DEFAULT

local STAR, BRACKET = 42, 91


-- of_hello returns the name of a client hello in the form of units.
function _M.of_hello(server_name)
    return (string_gsub(string_lower(server_name), "%.$", ""))
end


-- Whether patterns may match a name. Not addresses, and not requests without a host:
-- health checks of load balancers are sent so, and must not match an alias.
local function may_be_alias(client_name)
    return client_name ~= DEFAULT
        and string_byte(client_name, 1) ~= BRACKET
        and not string_find(client_name, "^%d%d?%d?%.%d%d?%d?%.%d%d?%d?%.%d%d?%d?$")
end


-- The name unit with the host that answers, false if it can't be used, nil if there is
-- none, not even that of the default host.
function _M.for_host(client_name, revision)
    -- A client can't ask for a wildcard, which is not a host name.
    if string_byte(client_name) ~= STAR then
        local found = units.name(client_name, revision)
        if found ~= nil then
            return found
        end
        local wildcard = name.wildcard(client_name)
        found = wildcard and units.name(wildcard, revision)
        if found ~= nil and wildcard then
            return found
        end
        if may_be_alias(client_name) then
            local patterns = units.patterns(revision)
            if patterns == false then
                return false
            end
            found = patterns and patterns:find(client_name)
            if found then
                return found
            end
        end
    end
    return units.name(DEFAULT, revision)
end


-- covering is the wildcard with TLS above a name that has none itself, or nil. Both must
-- have the same owner, if names have one.
-- The name's unit remembers it for this revision.
local function covering(found, client_name, revision)
    if found.covered_at ~= revision then
        local wildcard = name.wildcard(client_name)
        local above = wildcard and units.name(wildcard, revision)
        found.covered_by = above and above.has_tls and above.owner == found.owner and above or nil
        found.covered_at = revision
    end
    return found.covered_by
end


-- The name unit by which a client's name has TLS, or nil. found: the result of for_host
-- for the name.
function _M.with_tls(found, client_name, revision)
    if found.has_tls then
        return found
    end
    local covers = found.covers
    if covers then
        local wildcard = name.wildcard(client_name)
        return (covers[client_name] or wildcard and covers[wildcard]) and found or nil
    end
    -- A wildcard has answered already, and the default has none above it.
    if found.name ~= client_name then
        return nil
    end
    return covering(found, client_name, revision)
end


-- The same for a name from a TLS handshake.
function _M.for_certificate(client_name, revision)
    local found = _M.for_host(client_name, revision)
    return found and _M.with_tls(found, client_name, revision)
end


return _M
