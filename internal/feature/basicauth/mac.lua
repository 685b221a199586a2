-- Message authentication codes. The key is random, and only in the memory that the
-- workers share.
local ffi = require "ffi"
local memory = require "headgate.memory"
-- It declares RAND_bytes.
require "headgate.request_id"

local _M = {}

local C = ffi.C
local ffi_string = ffi.string

ffi.cdef [[
const void *EVP_sha256(void);
unsigned char *HMAC(const void *md, const void *key, int key_length,
                    const unsigned char *data, size_t length, unsigned char *out, unsigned int *out_length);
]]

local BYTES = 32

local out = ffi.new("unsigned char[?]", BYTES)
local out_length = ffi.new("unsigned int[1]")
local key


local function new_key()
    if C.RAND_bytes(out, BYTES) ~= 1 then
        error("OpenSSL gives no random bytes")
    end
    return ffi_string(out, BYTES)
end


-- of(text) -> 32 bytes, by HMAC with SHA-256.
function _M.of(text)
    key = key or memory.secret(new_key)
    if C.HMAC(C.EVP_sha256(), key, BYTES, text, #text, out, out_length) == nil then
        error("OpenSSL failed to make an HMAC")
    end
    return ffi_string(out, BYTES)
end


return _M
