-- Sets the Host header of requests to the backend.
local requests = require "headgate.request"
local template = require "headgate.template"

local _M = {}


-- policy: { host }. Where all its variables are empty the client's Host stays.
function _M.request_headers(policy, request)
    local host = template.fill(policy.host, request)
    if host ~= "" then
        requests.set_backend_host(host)
    end
end


return _M
