-- The balancer phase: names the endpoint for each try.
local balancer = require "ngx.balancer"
local features = require "headgate.features"
local log = require "headgate.log"
local requests = require "headgate.request"
local route = require "headgate.route"
local settings = require "headgate.settings"
local shortcuts = require "headgate.shortcut"

local _M = {}

local set_current_peer = balancer.set_current_peer
local set_more_tries = balancer.set_more_tries
local type = type


local function begin(request)
    set_more_tries(settings.tries - 1)
    if request.route.phases.balancer then
        features.run(request.route.phases.balancer, request)
    end
    local backend = request.backend
    local index = backend.picker:pick(request, backend.avoid)
    request.tried = index
    return index
end


-- without(backend, tried) -> the set of the endpoints that a retry avoids: those that were
-- tried, and those that the backend avoids, as long as that leaves one.
local function without(backend, tried)
    local avoid = backend.avoid
    if not avoid then
        return tried
    end
    local all, count = {}, 0
    for i = 1, backend.count do
        if tried[i] or avoid[i] then
            all[i], count = true, count + 1
        end
    end
    return count < backend.count and all or tried
end


-- again picks the endpoint of a retry. Only retries need tables.
local function again(request)
    local tried = request.tried
    if type(tried) == "number" then
        request.tries = { tried }
        tried = { [tried] = true }
        request.tried = tried
    end
    local backend = request.backend
    local index = backend.picker:pick(request, without(backend, tried))
    tried[index] = true
    request.tries[#request.tries + 1] = index
    return index
end


local function set_peer(backend, index)
    local ok, err = set_current_peer(backend.addresses[index], backend.ports[index])
    if not ok then
        log.err("set the endpoint: ", err)
    end
end


function _M.run()
    local backend = shortcuts.take()
    if backend then
        set_more_tries(settings.tries - 1)
        return set_peer(backend, backend.turns:pick(nil, backend.avoid))
    end
    local request = requests.current() or route.again()
    local index = request.tried and again(request) or begin(request)
    return set_peer(request.backend, index)
end


return _M
