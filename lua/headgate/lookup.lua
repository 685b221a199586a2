-- Finds the host and the route of a request, and makes its table.
local access_log = require "headgate.access_log"
local client = require "headgate.client"
local features = require "headgate.features"
local memory = require "headgate.memory"
local names = require "headgate.names"
local networks = require "headgate.networks"
local paths = require "headgate.paths"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local shortcuts = require "headgate.shortcut"
local units = require "headgate.units"

local _M = {}

-- Without request metrics there is none.
local traffic = settings.traffic and require "headgate.traffic"
-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_header = ngx.header
local ngx_var = ngx.var
local string_find = string.find

local HEALTHY = 200
local BAD_REQUEST = 400
local FORBIDDEN = 403
local NOT_FOUND = 404
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503

-- How often a request may be routed again, as in NGINX.
local MAX_MOVES = 10

local DEFAULT_HOST = names.DEFAULT
local STATUS_PATH = "/nginx_status"
local LOOPBACK = { ["127.0.0.1"] = true, ["::1"] = true }


-- Redirects to the route that was written with a slash at its end.
local function redirect_to_slash(route, host_name, path)
    local target = requests.with_query(path .. "/")
    return ngx.redirect(requests.whole(target, route.relative, host_name), 301)
end


-- Redirects a www redirect alias to its host.
local function redirect_to_host(name, globals)
    local target = client.scheme() .. "://" .. name.host .. requests.path_and_query()
    return ngx.redirect(target, globals.redirect_code)
end


-- gets_status reports whether the client may see NGINX's status, by a list of networks, nil for
-- loopback addresses. Neither a load balancer in the list, nor a header, must make the client one of them.
local function gets_status(list)
    local peer = ngx_var.realip_remote_addr
    if client.is_forwarded() then
        return false
    end
    if not list then
        return LOOPBACK[ngx_var.remote_addr] and LOOPBACK[peer]
    end
    local address = client.address()
    if not address or not networks.has(list, address) then
        return false
    end
    if peer == ngx_var.remote_addr then
        return true
    end
    local packed = networks.packed(peer)
    return packed and networks.has(list, packed)
end


-- builtin_page ends requests for the built-in pages of the default host.
local function builtin_page(path, globals)
    if traffic and (path == settings.health_path or path == STATUS_PATH) then
        traffic.skip()
    end
    if path == settings.health_path then
        access_log.skip()
        ngx_header["Content-Type"] = "text/html"
        ngx_header["Content-Length"] = 0
        return ngx_exit(memory.flag("leaving") and UNAVAILABLE or HEALTHY)
    end
    if path == STATUS_PATH then
        if not gets_status(globals.status_clients) then
            return ngx_exit(FORBIDDEN)
        end
        return ngx_exec("@nginx_status")
    end
end


-- look_up(host_name, revision) -> name, host, globals, and the shortcut that it made of
-- them, nil if it made none. Ends the request if one can't be used.
local function look_up(host_name, revision)
    local globals = units.globals(revision)
    local name = names.for_host(host_name, revision)
    local host, later
    if name then
        host, later = units.host(name.host, revision)
    end
    if not host or not globals then
        if later then
            ngx_header["Retry-After"] = "1"
        end
        -- Not 404: the unit that this worker can't use may have a route.
        return ngx_exit(UNAVAILABLE)
    end
    local shortcut
    -- Clients can send any number of names that no Ingress has.
    if name.name ~= DEFAULT_HOST then
        shortcut = shortcuts.learn(host_name, name, host, globals, revision)
    end
    return name, host, globals, shortcut
end


-- locate finds the route for a path of the request's host, where policies of the host may
-- choose another one. -> as host:find
local function locate(request, path)
    local host = request.host
    local route, second = host:find(path)
    local list = host.server and host.server.phases.find_route
    if list then
        for i = 1, #list, 2 do
            route, second = list[i](list[i + 1], request, path, route, second)
        end
    end
    return route, second
end


-- redirect_if_identified does so for a client that the host's TLS policies let pass.
local function redirect_if_identified(request)
    local phase = request.route.phases.before_slash
    if phase then
        features.run(phase, request)
    end
    return redirect_to_slash(request.route, request.host_name, request.path)
end


-- check_path ends the request if its path, behind which other routes are to stay closed, may
-- be read otherwise by the backend.
local function check_path(request)
    local path = request.path
    request.ambiguous_path = paths.is_ambiguous(ngx_var.request_uri)
    if (string_find(path, ";", 1, true) or string_find(path, "\\", 1, true))
        and paths.is_read_otherwise(locate, request) then
        return requests.finish(request, BAD_REQUEST)
    end
end


-- enter notes the route of the request, and ends the request if that needs another path.
local function enter(request, route, jumped)
    local host, slash = request.host, route.redirect_to_slash
    if traffic then
        traffic.enter(slash or route, request.name)
    end
    if tracing then
        tracing.enter(slash or route, jumped)
    end
    access_log.describe(slash or route)
    if slash and not host.tls then
        return redirect_to_slash(slash, request.host_name, request.path)
    end
    request.route = slash or route
    local program = request.program
    if program and program.late and program.owner == request.route.namespace then
        return requests.finish(request, UNAVAILABLE)
    end
    if slash then
        return redirect_if_identified(request)
    end
    if host.cleans_paths then
        check_path(request)
    end
    return request
end


-- run_server runs what comes before a route on this host: it may end the request, or change
-- its path.
local function run_server(request)
    local server = request.host.server
    request.route = server
    if traffic then
        traffic.enter(server, request.name)
    end
    access_log.describe(server)
    local phases = server.phases
    if phases.before_slash then
        features.run(phases.before_slash, request)
    end
    if phases.before_route then
        features.run(phases.before_route, request)
    end
end


-- find(host_name, revision, shortcut, jumped, ends) -> the request's table, with its route.
-- Ends the request if there is none. jumped, ends: see handle in route.lua.
function _M.find(host_name, revision, shortcut, jumped, ends)
    local name, host, globals
    if shortcut then
        name, host, globals = shortcut.name, shortcut.host, shortcut.globals
    else
        name, host, globals, shortcut = look_up(host_name, revision)
    end
    if name.redirect then
        return redirect_to_host(name, globals)
    end
    local path = ngx_var.uri
    if name.name == DEFAULT_HOST then
        builtin_page(path, globals)
    end
    local connection = host.tls and ngx.ctx.connection
    local request = requests.new()
    if connection then
        request.connection = connection
    end
    request.host_name = host_name
    request.name = name
    request.host = host
    request.path = path
    request.revision = revision
    request.globals = globals
    request.shortcut = shortcut
    if ends then
        request.ends_connection = true
    end
    if host.server then
        run_server(request)
        -- There was no route whose path has groups.
        request.groups = nil
    end
    local route, status = locate(request, request.path)
    if not route then
        return ngx_exit(status or NOT_FOUND)
    end
    return enter(request, route, jumped)
end


-- Routes a request again whose path its route has changed.
function _M.again(request, jumped)
    local moves = (request.moves or 0) + 1
    if moves > MAX_MOVES then
        return requests.finish(request, INTERNAL_ERROR)
    end
    request.moves, request.moved, request.breaks, request.groups = moves, nil, nil, nil
    request.unanswered = nil
    if request.program then
        -- What the snippet of the route before says does not count on the next one.
        request.program.location = nil
    end
    local route, status = locate(request, request.path)
    if not route then
        return requests.finish(request, status or NOT_FOUND)
    end
    return enter(request, route, jumped)
end


return _M
