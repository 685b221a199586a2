-- What a client sent, and what it and backends are answered. Only this module reads variables
-- with computed names, which are from units, or from the settings of the process. The fixed
-- prefixes keep a name from reaching any other variable.
local settings = require "headgate.settings"

local _M = {}

local ngx_get_method = ngx.req.get_method
local ngx_var = ngx.var
local string_gsub = string.gsub
local string_lower = string.lower
local string_sub = string.sub

-- What a replay of these does not change.
local SAFE = { GET = true, HEAD = true, OPTIONS = true, TRACE = true }

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
-- ends TLS, and says so, by the PROXY protocol or by X-Forwarded-Proto.
function _M.scheme()
    return ngx_var.scheme
end


if settings.proxied then
    function _M.scheme()
        return ngx_var.hg_scheme
    end
end


-- What backends get as X-Forwarded-For.
function _M.forwarded_for()
    return ngx_var.remote_addr
end


if settings.full_chain then
    function _M.forwarded_for()
        return ngx_var.hg_forwarded_for
    end
end


-- What NGINX has in $proxy_add_x_forwarded_for: the addresses that the client sent, and its own.
-- Lua can't read the variable, since NGINX finds it only while it reads nginx.conf.
function _M.added_forwarded_for()
    local sent, address = ngx_var.http_x_forwarded_for, ngx_var.remote_addr
    return sent and sent .. ", " .. address or address
end


-- asked() -> the host and the port that the client asked for, by the headers of a load balancer
-- that is believed; nil for what they don't say.
function _M.asked() end


if settings.forwarded then
    function _M.asked()
        local host, port = ngx_var.hg_asked_host, ngx_var.hg_asked_port
        return host ~= "" and host or nil, port ~= "" and port or nil
    end
end


-- is_forwarded reports whether the request has the header that the client's address would be
-- taken from.
function _M.is_forwarded()
    return false
end


if settings.address_header then
    local variable = "http_" .. string_gsub(string_lower(settings.address_header), "-", "_")

    function _M.is_forwarded()
        return ngx_var[variable] ~= nil
    end
end


-- The headers that backends get as X-Original-Forwarded-For and -Host.
function _M.original_for()
    return ngx_var[settings.original_for]
end


function _M.original_host()
    return ngx_var[settings.original_host]
end


-- may_be_replayed() -> whether the request came before its connection's handshake was
-- over, by the client or by a proxy before this one, and may change something.
function _M.may_be_replayed()
    return ngx_var.hg_early_data == "1" and not SAFE[ngx_get_method()]
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


-- What the last backend sent. name: as for header and cookie.
function _M.backend_header(name)
    return ngx_var["upstream_http_" .. name]
end


function _M.backend_cookie(name)
    return ngx_var["upstream_cookie_" .. name]
end


-- What the client gets. name: as for header.
function _M.sent_header(name)
    return ngx_var["sent_http_" .. name]
end


-- A variable that the administrator's text defines. Another name is an error.
function _M.defined(name)
    local defined = settings.defined
    if not defined or not defined[name] then
        error("nginx.conf does not define $" .. name)
    end
    return ngx_var[name]
end


-- bare is the name in a Host header: lower case, without port and final dot.
local function bare(http_host)
    local name = string_gsub(string_lower(http_host), ":%d*$", "")
    return (string_gsub(name, "%.$", ""))
end


-- Whether a Host line names the host that was routed. A request line with a whole URL
-- names the host that counts, and its Host header may name another one.
function _M.names(http_host, host_name)
    return http_host == host_name or bare(http_host) == host_name
end


return _M
