-- SHA-256, by the library that NGINX itself uses.
local ffi = require "ffi"

local _M = {}

local C = ffi.C
local ffi_string = ffi.string

ffi.cdef [[
unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);
]]

local BYTES = 32
local buffer = ffi.new("unsigned char[?]", BYTES)


-- The 32 bytes of a text's hash.
function _M.sha256(text)
    C.SHA256(text, #text, buffer)
    return ffi_string(buffer, BYTES)
end


return _M
