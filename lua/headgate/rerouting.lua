-- Routes a request once more that has no table: see shortcut.lua.
local backends = require "headgate.backend"
local memory = require "headgate.memory"
local names = require "headgate.names"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}

local ngx_var = ngx.var
local string_gmatch = string.gmatch


-- asked_before is the list of the endpoints that the request was sent to.
local function asked_before()
    local list = {}
    for endpoint in string_gmatch(ngx_var.upstream_addr or "", "[^, ]+:%d+") do
        list[#list + 1] = endpoint
    end
    return list
end


-- plain_backend(host_name, revision) -> the plain route that a request has now, its
-- backend; nil if it has none.
local function plain_backend(host_name, revision)
    local name = names.for_host(host_name, revision)
    local host = name and not name.redirect and units.host(name.host, revision)
    local route = host and not host.cleans_paths and host:find(ngx_var.uri)
    local backend = route and route.plain and units.with_endpoints(route.backend, revision)
    if backend and backend.turns and not backend.reports then
        return route, backend
    end
end


-- Makes the table of a request that had none: see shortcut.lua. Its route may have
-- changed since it came. If it is no longer a plain one, only the endpoints that were
-- asked may be asked again.
function _M.run()
    local revision = memory.revision()
    local host_name = ngx_var.host
    local asked = asked_before()
    local route, backend = plain_backend(host_name, revision)
    if not backend then
        if #asked == 0 then
            error("the route changed while the request's body came")
        end
        route, backend = { phases = {} }, backends.compile({ endpoints = asked })
    end
    local request = requests.new()
    request.host_name = host_name
    request.revision = revision
    request.route = route
    request.backend = backend
    if #asked > 0 then
        request.tried, request.tries = backend:indexes(asked)
    end
    return request
end


return _M
