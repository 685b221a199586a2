-- The fallback backend, or the default one, responds instead of errors.
local error_page = require "headgate.error_page"
local requests = require "headgate.request"

local _M = {}

local NOT_FOUND = 404


-- policy: { statuses, default }
function _M.error_page(policy, request)
    local statuses = policy.statuses
    for i = 1, #statuses do
        if statuses[i] == request.failed then
            error_page.fall_back(request, policy.default)
            -- The built-in default backend answers all requests so.
            return requests.finish(request, NOT_FOUND)
        end
    end
end


return _M
