-- What a client sent. Only this module reads variables with computed names, which are
-- from units. The fixed prefixes keep a name from reaching any other
-- variable.
local settings = require "headgate.settings"

local _M = {}

local ngx_var = ngx.var


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
