-- The answer phase, which only locations of a mode with answers have: what
-- features do to the header of an answer.
local features = require "headgate.features"
local requests = require "headgate.request"

local _M = {}


function _M.run()
    local request = requests.current()
    local answer = request and request.route.phases.answer
    if answer then
        features.run(answer, request)
    end
end


return _M
