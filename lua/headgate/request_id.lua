-- Ids for requests, 32 random hexadecimal digits each, as NGINX's $request_id.
--
-- NGINX asks OpenSSL for the 16 bytes of every single id, which costs a tenth
-- of all that a worker does for a proxied request. Here one call fetches the
-- bytes of many ids, so they are as hard to guess and far cheaper.
local ffi = require "ffi"

local _M = {}

local C = ffi.C
local ffi_string = ffi.string

ffi.cdef [[
int RAND_bytes(unsigned char *buf, int num);
]]

local IDS = 256
local ID_BYTES = 16
local ID_DIGITS = 2 * ID_BYTES

local random = ffi.new("unsigned char[?]", IDS * ID_BYTES)
-- The digits of `random`, written as pairs and read as characters.
local pairs_of_digits = ffi.new("uint16_t[?]", IDS * ID_BYTES)
local digits = ffi.cast("const char *", pairs_of_digits)
local left = 0


-- The two digits of each byte.
local function digits_of_bytes()
    local list = ffi.new("uint16_t[256]")
    for byte = 0, 255 do
        ffi.copy(list + byte, string.format("%02x", byte), 2)
    end
    return list
end


local DIGITS_OF = digits_of_bytes()


local function refill()
    if C.RAND_bytes(random, IDS * ID_BYTES) ~= 1 then
        return false
    end
    for i = 0, IDS * ID_BYTES - 1 do
        pairs_of_digits[i] = DIGITS_OF[random[i]]
    end
    left = IDS
    return true
end


-- next() -> an id, nil if OpenSSL gives no random bytes. Only workers may call
-- it: all of them would use the same bytes of the master.
function _M.next()
    if left == 0 and not refill() then
        return nil
    end
    left = left - 1
    return ffi_string(digits + left * ID_DIGITS, ID_DIGITS)
end


-- number_of_next() -> a number of 32 bits: the first half of the latter half of the id that next
-- returns when it is called again; nil if OpenSSL gives no random bytes
function _M.number_of_next()
    if left == 0 and not refill() then
        return nil
    end
    local at = (left - 1) * ID_BYTES + ID_BYTES / 2
    return ((random[at] * 256 + random[at + 1]) * 256 + random[at + 2]) * 256 + random[at + 3]
end


return _M
