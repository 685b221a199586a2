-- What a client sent. Only this module reads variables with computed names, which are
-- from units. The fixed prefixes keep a name from reaching any other
-- variable.
local settings = require "headgate.settings"

local _M = {}

local ngx_var = ngx.var
local string_sub = string.sub

local FOUR, SIX = 4, 16
-- How the address of an IPv4 client begins where it is written as one of IPv6.
local MAPPED = string.rep("\0", 10) .. "\255\255"


-- The client's address as 4 or 16 bytes, nil if it has none.
function _M.address()
    local address = ngx_var.binary_remote_addr
    if #address == FOUR then
        return address
    end
    if #address ~= SIX then
        return nil
    end
    return string_sub(address, 1, #MAPPED) == MAPPED and string_sub(address, #MAPPED + 1) or address
end


-- The scheme by which the client asks. It is not that of the connection if a load balancer
-- ends TLS, and the header of the PROXY protocol says so.
function _M.scheme()
    return ngx_var.scheme
end


if settings.proxied then
    function _M.scheme()
        return ngx_var.hg_scheme
    end
end


-- name: lower case, with underscores instead of hyphens.
function _M.header(name)
    return ngx_var["http_" .. name]
end


function _M.cookie(name)
    return ngx_var["cookie_" .. name]
end


function _M.argument(name)
    return ngx_var["arg_" .. name]
end


return _M
