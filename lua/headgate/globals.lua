-- The settings of all requests.
local features = require "headgate.features"

local _M = {}

local PERMANENT = 308


-- compile(unit) -> { settings, admit, redirect_code }
--   settings: by feature, what it has for all requests
--   admit: those of features that look at each request before it is routed: a flat list
--     function, setting, function, setting, …; nil if there are none
--   redirect_code: the status of redirects from a www redirect alias
function _M.compile(unit)
    local settings, admit = {}, {}
    for _, policy in ipairs(unit.policies) do
        local feature, value = policy[1], policy[2]
        local module = features.module(feature)
        if not module then
            error("no feature " .. tostring(feature), 0)
        end
        settings[feature] = value
        if module.admit then
            admit[#admit + 1] = module.admit
            admit[#admit + 1] = value
        end
    end
    return { settings = settings, admit = #admit > 0 and admit or nil, redirect_code = unit.redirect_code or PERMANENT }
end


return _M
