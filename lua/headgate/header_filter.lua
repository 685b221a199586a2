-- The header filter, which only locations of a mode with one have: what features
-- do to the header of an answer.
local features = require "headgate.features"
local requests = require "headgate.request"

local _M = {}


function _M.run()
    local request = requests.current()
    local phase = request and request.route.phases.header_filter
    if phase then
        features.run(phase, request)
    end
end


return _M
