-- What holds for every request: the settings that the features' route policies
-- share.
local cjson = require "cjson.safe"
local features = require "headgate.features"

local _M = {}


-- compile(payload) -> { settings } | nil, err
--   settings: by feature, what it has for all requests
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local settings = {}
    for _, policy in ipairs(unit.policies) do
        local feature, value = policy[1], policy[2]
        if not features.module(feature) then
            return nil, "no feature " .. tostring(feature)
        end
        settings[feature] = value
    end
    return { settings = settings }
end


return _M
