-- Headers for a backend that answers instead of a route's own.
local lookalikes = require "headgate.lookalikes"

local _M = {}

local ngx_var = ngx.var
local set = lookalikes.set
local string_match = string.match


-- Sets the headers of a fallback backend: the backend that it replaces, and the status
-- that clients would get without it.
function _M.describe(route, status)
    local _, service, port = string_match(route.backend or "", "^(.-)/(.-)/(.*)$")
    set("X-Code", status)
    set("X-Format", ngx_var.http_accept)
    set("X-Namespace", route.namespace)
    set("X-Ingress-Name", route.ingress)
    set("X-Service-Name", service)
    set("X-Service-Port", port)
end


-- Clears those of the backend that it replaces.
function _M.clear_origin()
    set("X-Namespace", nil)
    set("X-Ingress-Name", nil)
    set("X-Service-Name", nil)
    set("X-Service-Port", nil)
end


return _M
