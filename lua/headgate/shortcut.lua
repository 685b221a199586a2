-- Shortcuts: what routing found for the names that clients sent, at one revision.
--
-- A worker learns one behind the usual look-ups. It then has the name unit, the host and
-- the global settings in one table, and the backends of the host's routes with it. All are
-- forgotten when the revision moves, and when they are too many.
--
-- A request by GET or HEAD to a plain route (host.lua) needs no table of its own: NGINX
-- reaches the balancer before it does anything else, and finds the backend here. If
-- it comes there again, for a retry, or late, after a body, then rerouting.lua routes it
-- once more. On the way to the location of a profile nothing else happens either: the jump
-- takes no table, and the location's log phase finds none.
local C = require("ffi").C
local access_log = require "headgate.access_log"
local base = require "resty.core.base"
local client = require "headgate.client"
local features = require "headgate.features"
local ffi_new = require("ffi").new
local requests = require "headgate.request"
local settings = require "headgate.settings"
require "resty.core.request"

local _M = {}

-- Without request metrics there is none.
local traffic = settings.traffic and require "headgate.traffic"
-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local get_request = base.get_request
local ngx_exec = ngx.exec
local ngx_var = ngx.var

local GET, HEAD = ngx.HTTP_GET, ngx.HTTP_HEAD

-- The maximum length of a name, which is that of DNS.
local LONGEST = 253

-- What all shortcuts of a worker may weigh. One of these is about 50 bytes: an endpoint,
-- an eighth of a route, a quarter of the rest. The host and the backend are mostly in
-- their caches too, but those may have dropped them.
local MAX_WEIGHT = 65536
local OF_NAME, OF_ROUTE = 4, 8

-- By the name that the client sent: { name, host, globals }, and by route
--   backends  the routes' backends
--   direct    those of routes whose requests need nothing else
-- For a host with a single route, which is then in `route`, both are the backend itself.
-- any_direct: whether there is one of several. secure: `direct` is only for requests over
-- https.
local by_name = {}
local weight = 0
-- The revision at which they were learned, nil if nothing may be learned.
local learned_at

-- The request that this worker handles just now, if its backend is all that it needs.
local handed = ffi_new("void *[1]")
local handed_backend


-- Forgets all. revision: at which new ones may be learned, nil if none may.
function _M.start(revision)
    by_name, weight = {}, 0
    learned_at = revision
end


-- The shortcut of a name, nil if there is none.
function _M.get(host_name)
    return by_name[host_name]
end


-- weigh makes room: all shortcuts go if they are too many.
local function weigh(more)
    if weight + more > MAX_WEIGHT then
        by_name, weight = {}, 0
    end
    weight = weight + more
end


-- learn(host_name, name, host, globals, revision) -> a new shortcut, nil if there may be
-- none.
function _M.learn(host_name, name, host, globals, revision)
    local more = OF_NAME + OF_ROUTE * host.size
    if revision ~= learned_at or #host_name > LONGEST or more > MAX_WEIGHT / 2 then
        return nil
    end
    weigh(more)
    local only = host:only()
    local made = {
        name = name, host = host, globals = globals, route = only,
        backends = not only and {}, direct = not only and {}, any_direct = false,
        secure = false,
    }
    by_name[host_name] = made
    return made
end


local function is_direct(host, route, backend)
    -- A host with something before its routes cleans paths.
    return route.plain and backend.turns and not backend.reports and not host.patterns and not host.cleans_paths
end


-- Adds the backend of the request's route to its shortcut.
function _M.add_backend(shortcut, request, backend)
    -- If this forgets the shortcut itself, the request still has it.
    weigh(#backend.addresses + 1)
    local route = request.route
    local direct = is_direct(shortcut.host, route, backend) and features.idle(route.phases, request) or false
    if direct == "https" then
        shortcut.secure = true
    end
    if shortcut.route then
        shortcut.backends, shortcut.direct = backend, direct and backend
    else
        shortcut.backends[route], shortcut.direct[route] = backend, direct and backend or nil
        shortcut.any_direct = shortcut.any_direct or direct ~= false
    end
end


-- The backend of a route that a shortcut has, nil or false if it has none.
function _M.backend(shortcut, route)
    if shortcut.route then
        return shortcut.backends
    end
    return shortcut.backends[route]
end


-- Handles a request if all that it needs is its backend. Ends this phase if it jumps to
-- the location of a profile, as it must if it has jumped already. -> whether it did
function _M.enter(shortcut, host_name, jumped)
    handed[0] = nil
    if not shortcut then
        return false
    end
    local route, backend = shortcut.route, shortcut.direct
    if not route and shortcut.any_direct then
        route = shortcut.host:find(ngx_var.uri)
        backend = route and backend[route]
    end
    if not route or not backend or shortcut.secure and client.scheme() ~= "https" or ngx_var.http_host ~= host_name then
        return false
    end
    if tracing then
        tracing.enter(route, jumped)
    end
    local r = get_request()
    local method = C.ngx_http_lua_ffi_req_get_method(r)
    local location = route.location or jumped and "@" .. settings.default_profile
    if method == GET or method == HEAD then
        if location and ngx_var.content_length then
            -- Its length is compared with the limit before a jump: phase before_exec.
            return false
        end
        handed[0], handed_backend = r, backend
    elseif location then
        return false
    else
        -- It may wait for its body, and must find then what it found now.
        local request = requests.new()
        request.host_name, request.route, request.backend = host_name, route, backend
    end
    if traffic then
        traffic.enter(route, shortcut.name)
    end
    access_log.describe(route)
    requests.set_id()
    if location then
        return ngx_exec(location)
    end
    return true
end


-- In the balancer: the backend of the request that entered last, if this is its first
-- try and there was nothing to wait for.
function _M.take()
    if handed[0] == get_request() then
        handed[0] = nil
        return handed_backend
    end
end


return _M
