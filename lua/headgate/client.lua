-- Values that a client sent, by names from units. Only this module reads variables
-- with computed names. The fixed prefixes keep a name from reaching any other
-- variable.
local _M = {}

local ngx_var = ngx.var


-- name: lower case, with underscores instead of hyphens.
function _M.header(name)
    return ngx_var["http_" .. name]
end


function _M.cookie(name)
    return ngx_var["cookie_" .. name]
end


function _M.argument(name)
    return ngx_var["arg_" .. name]
end


return _M
