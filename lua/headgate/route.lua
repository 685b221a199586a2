-- The rewrite phase: has the route of a request found, runs its policies, and sends it to
-- its location.
local access = require "headgate.access"
local access_log = require "headgate.access_log"
local client = require "headgate.client"
local fallbacks = require "headgate.fallback"
local features = require "headgate.features"
local lookup = require "headgate.lookup"
local memory = require "headgate.memory"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local shortcuts = require "headgate.shortcut"
local targets = require "headgate.target"
local units = require "headgate.units"

local _M = {}

-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_header = ngx.header
local ngx_req = ngx.req
local ngx_var = ngx.var

local BAD_REQUEST = 400
local NOT_FOUND = 404
local UNAVAILABLE = 503
local TOO_EARLY = 425


-- The control dictionary at the last revision.
local revision_seen, loaded, draining, leaving
-- What looks at each request before it is routed, at the last revision: see globals.lua.
local admit


local function look(revision)
    loaded = memory.flag("loaded")
    leaving = memory.flag("leaving")
    draining = leaving or memory.flag("draining")
    shortcuts.start(loaded and not draining and revision or nil)
    local globals = loaded and units.globals(revision)
    if loaded and not globals then
        -- Not a request may pass by what this worker does not know.
        return ngx_exit(UNAVAILABLE)
    end
    admit = globals and globals.admit
    if tracing then
        tracing.set(globals and globals.tracing)
    end
    revision_seen = revision
end


-- fallback_backend is the backend that answers while the route's own has no endpoint,
-- nil if there is none.
local function fallback_backend(route, revision)
    local fallback = route.fallback
    local backend = fallback and units.with_endpoints(fallback.backend, revision)
    if backend then
        fallbacks.describe(route, UNAVAILABLE)
        access_log.set_backend(fallback.label)
    end
    return backend
end


-- own_backend is the route's own backend, nil if it has no endpoint.
local function own_backend(request, route)
    local shortcut = request.shortcut
    local backend = shortcut and shortcuts.backend(shortcut, route)
    if not backend then
        backend = units.with_endpoints(route.backend, request.revision)
        if backend and shortcut then
            shortcuts.add_backend(shortcut, request, backend)
        end
    end
    return backend
end


-- select_backend finds the backend of the request, or ends it if there is none with an
-- endpoint. If the built-in default backend answers, there is none, and the request is
-- authenticated first: see answer_default.
local function select_backend(request, route)
    if not route.backend or request.unanswered then
        return
    end
    if route.phases.select_backend then
        features.run(route.phases.select_backend, request)
        if request.backend then
            return
        end
    end
    request.backend = own_backend(request, route) or not route.default and fallback_backend(route, request.revision)
    if not request.backend and not route.default then
        return requests.finish(request, UNAVAILABLE)
    end
end


-- answer_default ends a request for the built-in default backend, or which no backend
-- answers, if it may pass. A body that is too long is rejected first.
local function answer_default(request, phases)
    if phases.before_exec then
        features.run(phases.before_exec, request)
    end
    return requests.finish(request, request.unanswered or NOT_FOUND)
end


-- is_written reports whether a rewrite directive wrote the path, a part of which may be the
-- client's, on a host where other paths are to stay closed.
local function is_written(request)
    local program = request.program
    return program and program.internal and request.host.cleans_paths
end


-- go_on runs the policies of a request and sends it to its location. -> true if the request
-- is to be routed again instead
local function go_on(request, route, phases, jumped)
    if phases.rewrite then
        features.run(phases.rewrite, request)
        if request.moved then
            return true
        end
    end
    select_backend(request, route)
    requests.set_id()
    requests.set_host(request.host_name)
    if phases.preaccess then
        features.run(phases.preaccess, request)
    end
    if phases.authenticate then
        access.authenticate(phases.authenticate, request)
    end
    if not request.backend and (request.passed or not route.identity) then
        return answer_default(request, phases)
    end
    if request.ambiguous_path or is_written(request) then
        -- Else a path without an auth check could be one with an auth check for the
        -- backend. NGINX does not resolve "..;" and backslashes, nor what a rewrite
        -- directive writes: these are rejected.
        if targets.has_dot_segment(request.path) then
            return requests.finish(request, BAD_REQUEST)
        end
        requests.set_path(request.path)
    end
    if phases.request_headers then
        features.run(phases.request_headers, request)
    end

    local location = route.location
    if request.passed then
        location = route.passed
    end
    if not location and (jumped or request.backend and request.backend.reports) then
        location = "@" .. settings.default_profile
    end
    if location then
        if phases.before_exec then
            features.run(phases.before_exec, request)
        end
        requests.keep(request)
        return ngx_exec(location)
    end
end


-- go_on_to_log does so where the log phase gives back what policies take: an error before
-- the jump must not keep it from running.
local function go_on_to_log(request, route, phases, jumped)
    local ok, err = pcall(go_on, request, route, phases, jumped)
    if not ok then
        requests.abandon(request)
        error(err, 0)
    end
    return err
end


-- follow sends a request to its route's location. -> as go_on
local function follow(request, jumped)
    local route = request.route
    local phases = route.phases
    if phases.begin then
        features.run(phases.begin, request)
    end
    if route.denied then
        return requests.finish(request, UNAVAILABLE)
    end
    if settings.early_data and phases.authenticate and client.may_be_replayed() then
        return requests.finish(request, TOO_EARLY)
    end
    if phases.log then
        return go_on_to_log(request, route, phases, jumped)
    end
    return go_on(request, route, phases, jumped)
end


-- handle sends a request to its location. jumped: it has jumped already and must jump
-- again. ends: its connection ends with it.
local function handle(host_name, revision, shortcut, jumped, ends)
    local request = lookup.find(host_name, revision, shortcut, jumped, ends)
    while follow(request, jumped) do
        lookup.again(request, jumped)
    end
end


-- ask_to_leave() -> whether the request must end its connection in the location @drain.
-- Before a reload, and before NGINX ends, a client is asked to leave its HTTP/1
-- connection: NGINX says so in the answer if a location on the request's way has
-- no keep-alive. A connection that is upgraded has no further request to lose.
-- NGINX does what is needed for HTTP/2.
local function ask_to_leave()
    if not draining then
        return false
    end
    return ngx_req.http_version() < 2 and ngx_var.hg_upgrade == ""
end


-- refresh() -> the revision, with the control dictionary read again if it is new
local function refresh()
    local revision = memory.revision()
    if revision ~= revision_seen then
        look(revision)
    end
    return revision
end


-- end_http3 asks the client to use no HTTP/3 of the host, before NGINX ends: it closes an idle connection of
-- HTTP/3 at once when it exits, and a request that is on its way is lost. A reload ends all of these in any case.
local function end_http3()
    if leaving and ngx_req.http_version() == 3 then
        requests.end_http3()
    end
end


-- refuse_load ends a request before the first load is complete.
local function refuse_load()
    ngx_header["Retry-After"] = "1"
    return ngx_exit(UNAVAILABLE)
end


-- route_admitted routes a request that admit has let pass. jumped: as for handle
local function route_admitted(revision, jumped)
    local host_name = ngx_var.host
    local shortcut = shortcuts.get(host_name)
    if shortcuts.enter(shortcut, host_name, jumped) then
        return
    end
    if not loaded then
        return refuse_load()
    end
    if ask_to_leave() then
        return ngx_exec("@drain")
    end
    return handle(host_name, revision, shortcut, jumped)
end


-- jumped: as for handle
local function run(jumped)
    local revision = refresh()
    end_http3()
    if admit then
        features.run(admit)
    end
    return route_admitted(revision, jumped)
end


function _M.run()
    -- Subrequests of Headgate have their location already.
    if not ngx.is_subrequest then
        return run(false)
    end
end


-- Where the administrator has lines in the server, requests that may pass go on to these, and to
-- locations among them.
function _M.admit()
    if ngx.is_subrequest then
        return
    end
    refresh()
    end_http3()
    if not loaded then
        return refuse_load()
    end
    if admit then
        features.run(admit)
    end
end


-- Routes a request that has passed admit, and that no location of the administrator has.
function _M.run_admitted()
    return route_admitted(refresh(), true)
end


-- Routes a request in a location that it has jumped to: see chain.lua.
function _M.run_jumped()
    return run(true)
end


-- Routes a request that is sampled for tracing in the location @traced, which has all that the usual
-- location has, but no look at the length of a body: such a request jumps once more.
function _M.run_traced()
    local host_name = ngx_var.host
    local shortcut, jumped = shortcuts.get(host_name), ngx_var.content_length ~= nil
    if not shortcuts.enter(shortcut, host_name, jumped) then
        return handle(host_name, revision_seen, shortcut, jumped)
    end
end


-- Continues a request in the location @drain.
function _M.run_draining()
    return handle(ngx_var.host, memory.revision(), nil, true, true)
end


return _M
