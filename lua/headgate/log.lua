-- The only place that writes to the error log. NGINX writes a message as it
-- is, so a line end in it would forge a line: control bytes are escaped.
local _M = {}

local ngx = ngx
local string_byte = string.byte
local string_format = string.format
local string_gsub = string.gsub


local function escape(c)
    return string_format("\\x%02x", string_byte(c))
end


function _M.err(...)
    local message = table.concat({ ... })
    ngx.log(ngx.ERR, (string_gsub(message, "[%c\127]", escape)))
end


return _M
