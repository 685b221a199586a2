-- The answer phase: what features do to the header of an answer.
local features = require "headgate.features"
local memory = require "headgate.memory"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}


function _M.run()
    local request = requests.current()
    local globals
    if request then
        globals = request.globals
    else
        globals = units.globals(memory.revision())
    end
    if globals then
        features.run(globals.answer, request)
    end
    if request and request.route.phases.answer then
        features.run(request.route.phases.answer, request)
    end
end


return _M
