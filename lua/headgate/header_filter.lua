-- The header filter: runs the features' functions for the header of a response. NGINX
-- runs it for requests with a route in locations of a variant with one. If a feature sees
-- all responses, NGINX runs it for all.
local features = require "headgate.features"
local memory = require "headgate.memory"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local units = require "headgate.units"

local _M = {}

local sees_responses = settings.sees_responses


-- Runs what is for all responses. The policies of a route come after it: they have
-- precedence.
local function run_for_all(request)
    local globals = request and request.globals or units.globals(memory.revision())
    local list = globals and globals.responses
    if list then
        features.run(list, request)
    end
end


function _M.run()
    local request = requests.current()
    if sees_responses and not (request and request.filtered) then
        run_for_all(request)
    end
    local phase = request and request.route.phases.header_filter
    if phase then
        features.run(phase, request)
    end
end


-- Runs in locations of a variant without a header filter, and where there is no location.
function _M.run_alone()
    local request = requests.current()
    if not (request and request.filtered) then
        run_for_all(request)
    end
end


return _M
