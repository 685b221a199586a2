-- Sets the Connection header of requests to backends.
local requests = require "headgate.request"

local _M = {}


function _M.request_headers(policy)
    requests.set_connection(policy.connection)
end


return _M
