-- The balancer phase: names the endpoint for each try.
local balancer = require "ngx.balancer"
local features = require "headgate.features"
local log = require "headgate.log"
local requests = require "headgate.request"

local _M = {}

local set_current_peer = balancer.set_current_peer
local set_more_tries = balancer.set_more_tries
local type = type

-- Further tries after the first, where no feature says otherwise.
local MORE_TRIES = 2


local function begin(request)
    set_more_tries(MORE_TRIES)
    if request.route.phases.balancer then
        features.run(request.route.phases.balancer, request)
    end
    local address, port = request.backend:next()
    request.tried = request.backend.turn
    return address, port
end


-- again asks another endpoint than those before. Only now is a table made.
local function again(request)
    local tried = request.tried
    if type(tried) == "number" then
        tried = { [tried] = true }
        request.tried = tried
    end
    return request.backend:another(tried)
end


function _M.run()
    local request = requests.current()
    if not request then
        error("a request without a route reached a backend")
    end
    local address, port
    if request.tried then
        address, port = again(request)
    else
        address, port = begin(request)
    end
    local ok, err = set_current_peer(address, port)
    if not ok then
        log.err("set the endpoint: ", err)
    end
end


return _M
