-- The settings of all requests.
local features = require "headgate.features"

local _M = {}

local PERMANENT = 308


-- compile(unit) -> { settings, redirect_code }
--   settings: by feature, what it has for all requests
--   redirect_code: the status of redirects from a www redirect alias
function _M.compile(unit)
    local settings = {}
    for _, policy in ipairs(unit.policies) do
        local feature, value = policy[1], policy[2]
        if not features.module(feature) then
            error("no feature " .. tostring(feature), 0)
        end
        settings[feature] = value
    end
    return { settings = settings, redirect_code = unit.redirect_code or PERMANENT }
end


return _M
