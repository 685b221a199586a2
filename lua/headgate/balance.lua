-- The balance phase: names the endpoint for each try.
local balancer = require "ngx.balancer"
local features = require "headgate.features"
local log = require "headgate.log"
local requests = require "headgate.request"

local _M = {}

local set_current_peer = balancer.set_current_peer
local set_more_tries = balancer.set_more_tries

-- Further tries after the first; nginx.conf bounds them too.
local MORE_TRIES = 2


function _M.run()
    local request = requests.current()
    if not request then
        error("a request without a route reached a backend")
    end
    if not request.tried then
        request.tried = true
        set_more_tries(MORE_TRIES)
        if request.route.phases.balance then
            features.run(request.route.phases.balance, request)
        end
    end
    local ok, err = set_current_peer(request.backend:next())
    if not ok then
        log.err("set the endpoint: ", err)
    end
end


return _M
