-- The settings of all requests.
local cjson = require "cjson.safe"
local features = require "headgate.features"

local _M = {}

local PERMANENT = 308


-- compile(payload) -> { settings, redirect_code } | nil, err
--   settings: by feature, what it has for all requests
--   redirect_code: the status of redirects from a www redirect alias
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
    return { settings = settings, redirect_code = unit.redirect_code or PERMANENT }
end


return _M
