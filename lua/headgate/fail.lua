-- Where NGINX leads a request whose answer a profile catches: a backend's, or
-- one that NGINX made in its place. Routes whose profile catches nothing never
-- come here.
local requests = require "headgate.request"

local _M = {}

local ngx_exit = ngx.exit


-- status: of the answer, of which nothing else is left. unread: whether the
-- request's body may have gone to the backend without being kept.
function _M.run(status, unread)
    local request = requests.current()
    if not request then
        return ngx_exit(status)
    end
    request.unread = unread
    return requests.finish(request, status)
end


return _M
