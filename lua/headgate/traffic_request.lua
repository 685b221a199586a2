-- What NGINX knows about a request that is over: its sizes, and the times of its backend.
--
-- Only variables have that. One joins them all, and its text is read where NGINX has it: no string is made of it.
local C = require("ffi").C
local ffi = require "ffi"
require "resty.core.var"

local _M = {}

local ffi_new = ffi.new
local tonumber = tonumber

-- $request_length, $bytes_sent, and the times of the backend.
local VARIABLE = "hg_traffic"
local lower_case = ffi_new("char[?]", #VARIABLE)
local value_pointer, value_length = ffi_new("char *[1]"), ffi_new("size_t[1]")
local message = ffi_new("char *[1]")

local ZERO, NINE, DOT, BAR = 48, 57, 46, 124


-- number reads a number of the variable, without its dot: NGINX writes seconds with three digits behind it.
-- -> the number, -1 if there is none or there are several; where the next one begins
local function number(text, i, length)
    local value, single = -1, true
    while i < length do
        local c = text[i]
        i = i + 1
        if c >= ZERO and c <= NINE then
            value = (value < 0 and 0 or value * 10) + c - ZERO
        elseif c == BAR then
            break
        elseif c ~= DOT then
            single = false
        end
    end
    return single and value or -1, i
end


-- read(r) -> the bytes of the request, those that were sent, and in milliseconds the times
-- of its only backend until the connection, the header and the end; -1 for what there is not.
function _M.read(r)
    if C.ngx_http_lua_ffi_var_get(r, VARIABLE, #VARIABLE, lower_case, 0, value_pointer, value_length, message) ~= 0 then
        return -1, -1, -1, -1, -1
    end
    local text, length = value_pointer[0], tonumber(value_length[0])
    local received, sent, connect, header, response, i
    received, i = number(text, 0, length)
    sent, i = number(text, i, length)
    connect, i = number(text, i, length)
    header, i = number(text, i, length)
    response = number(text, i, length)
    return received, sent, connect, header, response
end


return _M
