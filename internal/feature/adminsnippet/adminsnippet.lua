-- Refuses all requests while the administrator's lines are missing that may control access.
local ngx_exit = ngx.exit

local _M = {}

local UNAVAILABLE = 503


function _M.admit()
    return ngx_exit(UNAVAILABLE)
end


return _M
