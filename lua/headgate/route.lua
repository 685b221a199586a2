-- The route phase: which host and route a request belongs to, what its
-- policies say, and where it goes on.
local features = require "headgate.features"
local log = require "headgate.log"
local memory = require "headgate.memory"
local names = require "headgate.names"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local units = require "headgate.units"

local _M = {}

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_header = ngx.header
local ngx_req = ngx.req
local ngx_var = ngx.var
local string_gsub = string.gsub
local string_lower = string.lower

local HEALTHY = 200
local NOT_FOUND = 404
local FORBIDDEN = 403
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503

local NOBODYS = names.DEFAULT
local STATUS_PATH = "/nginx_status"
local LOOPBACK = { ["127.0.0.1"] = true, ["::1"] = true }

-- What the control dictionary said at the revision seen last.
local revision_seen, loaded, draining


local function look(revision)
    loaded = memory.loaded()
    draining = memory.draining()
    revision_seen = revision
end


-- bare is the name in a Host header: lower case, without port and final dot.
local function bare(http_host)
    local name = string_gsub(string_lower(http_host), ":%d*$", "")
    return (string_gsub(name, "%.$", ""))
end


-- A request line with a whole URL names the host that counts, and its Host
-- header may name another one: the backend is told the one that was routed.
local function settle_host(host_name)
    local http_host = ngx_var.http_host
    if http_host and http_host ~= host_name and bare(http_host) ~= host_name then
        requests.set_backend_host(host_name)
    end
end


local function redirect_to_slash(host_name, path)
    local args = ngx_var.args
    local target = ngx_var.scheme .. "://" .. host_name .. ngx.escape_uri(path, 0) .. "/"
    if args then
        target = target .. "?" .. args
    end
    return ngx.redirect(target, 301)
end


-- own_page ends requests for the pages that Headgate itself has under names
-- that nobody has.
local function own_page(path)
    if path == settings.health_path then
        ngx_header["Content-Type"] = "text/html"
        ngx_header["Content-Length"] = 0
        return ngx_exit(HEALTHY)
    end
    if path == STATUS_PATH then
        if not LOOPBACK[ngx_var.remote_addr] then
            return ngx_exit(FORBIDDEN)
        end
        return ngx_exec("@nginx_status")
    end
end


-- find finds the request's route and fills in its table, or ends the request.
local function find(host_name, revision)
    local globals = units.globals(revision)
    local name = names.for_host(host_name, revision)
    local host = name and units.host(name.host, revision)
    if not host or not globals then
        -- Not 404: a unit that this worker can't use may well have a route.
        return ngx_exit(UNAVAILABLE)
    end
    local path = ngx_var.uri
    if name.name == NOBODYS then
        own_page(path)
    end
    local route, err = host:find(path)
    if err then
        log.err("host ", name.host, ": ", err)
        return ngx_exit(INTERNAL_ERROR)
    end
    if not route then
        return ngx_exit(NOT_FOUND)
    end
    if route.redirect_to_slash then
        return redirect_to_slash(host_name, path)
    end
    local request = requests.new()
    request.host_name = host_name
    request.name = name
    request.path = path
    request.revision = revision
    request.globals = globals
    request.route = route
    return request
end


-- with_endpoints is the backend of that name, nil if it can't be asked.
local function with_endpoints(name, revision)
    local backend = units.backend(name, revision)
    return backend and backend.count > 0 and backend or nil
end


-- stand_in is the backend to ask where the route's own has no endpoint, nil if
-- there is none.
local function stand_in(fallback, revision)
    local backend = fallback and with_endpoints(fallback.backend, revision)
    if backend then
        requests.set_fallback(fallback)
        requests.set_backend_label(fallback.label)
    end
    return backend
end


-- handle takes a request to where it goes on. jumped: it can't go on where it
-- is, since it has jumped already.
local function handle(revision, jumped)
    local host_name = ngx_var.host
    local request = find(host_name, revision)
    local route = request.route
    if settings.access_log then
        requests.set_backend_label(route.backend_label)
    end
    if route.denied then
        return ngx_exit(UNAVAILABLE)
    end
    if route.phases.route then
        features.run(route.phases.route, request)
    end

    if not route.backend then
        return ngx_exit(NOT_FOUND)
    end
    local backend = with_endpoints(route.backend, revision) or stand_in(route.fallback, revision)
    if not backend then
        return ngx_exit(route.default and NOT_FOUND or UNAVAILABLE)
    end
    request.backend = backend
    requests.set_id()
    settle_host(host_name)

    local location = route.location or jumped and "@" .. settings.default_profile
    if location then
        if route.phases.jump then
            features.run(route.phases.jump, request)
        end
        requests.keep(request)
        return ngx_exec(location)
    end
end


-- Before a reload, a client is asked to leave its HTTP/1 connection: NGINX says
-- so in the answer if a location on the request's way has no keep-alive. A
-- connection that is upgraded has no further request to lose.
local function is_to_leave()
    return draining and ngx_req.http_version() < 2 and not ngx_var.http_upgrade
end


function _M.run()
    -- Subrequests are headgate's own and know where they go.
    if ngx.is_subrequest then
        return
    end
    local revision = memory.revision()
    if revision ~= revision_seen then
        look(revision)
    end
    if not loaded then
        ngx_header["Retry-After"] = "1"
        return ngx_exit(UNAVAILABLE)
    end
    if is_to_leave() then
        return ngx_exec("@drain")
    end
    return handle(revision, false)
end


-- Goes on with a request in the location @drain.
function _M.run_draining()
    return handle(memory.revision(), true)
end


return _M
