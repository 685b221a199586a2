-- What holds for every request: what the features do to all answers, and the
-- settings that their route policies share.
local cjson = require "cjson.safe"
local features = require "headgate.features"

local _M = {}


-- compile(payload) -> { settings, answer } | nil, err
--   settings: by feature, what it has for all requests
--   answer: function, setting, function, setting, … to run on every answer
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local settings, answer = {}, {}
    for _, policy in ipairs(unit.policies) do
        local feature, value = policy[1], policy[2]
        local module = features.module(feature)
        if not module then
            return nil, "no feature " .. tostring(feature)
        end
        settings[feature] = value
        if module.every_answer then
            answer[#answer + 1] = module.every_answer
            answer[#answer + 1] = value
        end
    end
    return { settings = settings, answer = answer }
end


return _M
