-- The settings of all requests.
local features = require "headgate.features"

local _M = {}

local PERMANENT = 308


-- add appends a function and its setting to a flat list, which it makes if there is none.
local function add(list, run, setting)
    if not run then
        return list
    end
    list = list or {}
    list[#list + 1] = run
    list[#list + 1] = setting
    return list
end


-- compile(unit) -> { settings, admit, responses, redirect_code, status_clients, tracing }
--   settings: by feature, what it has for all requests
--   admit: those of features that look at each request before it is routed: a flat list
--     function, setting, function, setting, …; nil if there are none
--   responses: the same of those that look at each response
--   redirect_code: the status of redirects from a www redirect alias
--   status_clients: the networks that get NGINX's status, nil for loopback addresses
--   tracing: which requests have spans, nil if none has: see tracing.lua
function _M.compile(unit)
    local settings = {}
    local admit, responses
    for _, policy in ipairs(unit.policies) do
        local feature, value = policy[1], policy[2]
        local module = features.module(feature)
        if not module then
            error("no feature " .. tostring(feature), 0)
        end
        settings[feature] = value
        admit = add(admit, module.admit, value)
        responses = add(responses, module.response, value)
    end
    local code = unit.redirect_code or PERMANENT
    local clients = unit.status_clients and assert(ngx.decode_base64(unit.status_clients))
    return {
        settings = settings, admit = admit, responses = responses, redirect_code = code, tracing = unit.tracing,
        status_clients = clients,
    }
end


return _M
