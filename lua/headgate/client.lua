-- What a client sent, by names that a unit has. The only reader of variables
-- whose names are not spelled: they begin as is spelled here, so that no name
-- leads to a variable that holds something else.
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
