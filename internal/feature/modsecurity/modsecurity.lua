-- Names requests for ModSecurity's logs. What ModSecurity does is in nginx.conf.
local requests = require "headgate.request"
local template = require "headgate.template"

-- Requests for paths with other rules, or none, must not reach what these rules guard.
local _M = { guards = true }


-- policy: { id }
function _M.request_headers(policy, request)
    requests.set_variables({ hg_modsecurity_id = template.fill(policy.id, request) })
end


function _M.applies(policy)
    return policy.id ~= nil
end


return _M
