-- The balancer phase: names the endpoint for each try.
local balancer = require "ngx.balancer"
local ejection = require "headgate.ejection"
local failure = require "headgate.failure"
local features = require "headgate.features"
local list = require "headgate.list"
local log = require "headgate.log"
local requests = require "headgate.request"
local rerouting = require "headgate.rerouting"
local retries = require "headgate.retries"
local settings = require "headgate.settings"
local shortcuts = require "headgate.shortcut"

local _M = {}

-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local set_current_peer = balancer.set_current_peer
local set_more_tries = balancer.set_more_tries
local type = type
local union = list.union


-- NGINX is granted one more try at a time.
local function begin(request)
    if request.route.phases.balancer then
        features.run(request.route.phases.balancer, request)
    end
    local backend = request.backend
    local index = backend.picker:pick(request, backend.avoid)
    request.tried = index
    if request.max_tries ~= 1 and (not backend.retries or retries.begins(backend, index)) then
        set_more_tries(1)
    end
    return index
end


-- without(backend, tried) -> the set of the endpoints that a retry avoids: those that were
-- tried, and those that are failing or that the backend avoids, as long as that leaves one. A
-- terminating endpoint that was tried has an index behind theirs.
local function without(backend, tried)
    local avoid = tried
    if backend.failing then
        avoid = union(avoid, backend.failing, backend.count) or avoid
    end
    if backend.avoid then
        avoid = union(avoid, backend.avoid, backend.count) or avoid
    end
    return avoid
end


-- Notes the failure of a try. -> whether no connection was made
local function note(backend, index)
    local failed, long, took = failure.to_connect()
    if failed and index then
        ejection.connect_failed(backend, index, long, took)
    end
    return failed
end


-- again picks the endpoint of a retry. Only retries need tables.
local function again(request)
    local tried = request.tried
    if type(tried) == "number" then
        request.tries = { tried }
        tried = { [tried] = true }
        request.tried = tried
    end
    local backend, tries = request.backend, request.tries
    local unconnected = note(backend, tries[#tries])
    local index = backend.picker:pick(request, without(backend, tried))
    local stays = tried[index]
    if not unconnected or stays or backend.failing and backend.failing[index] then
        retries.pay(backend)
    end
    tried[index] = true
    tries[#tries + 1] = index
    if #tries < (request.max_tries or settings.tries) and retries.goes_on(backend, index, stays) then
        set_more_tries(1)
    end
    return index
end


local function set_peer(backend, index)
    local ok, err = set_current_peer(backend.addresses[index], backend.ports[index])
    if not ok then
        log.err("set the endpoint: ", err)
    end
end


function _M.run()
    if tracing then
        tracing.try()
    end
    local backend = shortcuts.take()
    if backend then
        local index = backend.turns:pick(nil, backend.avoid)
        if not backend.retries or retries.begins(backend, index) then
            set_more_tries(1)
        end
        return set_peer(backend, index)
    end
    local request = requests.current() or rerouting.run()
    local index = request.tried and again(request) or begin(request)
    return set_peer(request.backend, index)
end


return _M
