-- The only place that writes to the error log. NGINX writes a message as it
-- is, so a line end in it would forge a line: control bytes are escaped.
local _M = {}

local function escape(c)
    return string.format("\\x%02x", string.byte(c))
end


function _M.err(...)
    local message = table.concat({ ... })
    ngx.log(ngx.ERR, (string.gsub(message, "[%c\127]", escape)))
end


return _M
