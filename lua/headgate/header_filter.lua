-- The header filter, in locations of a variant with one: runs the features' functions
-- for the header of a response.
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
