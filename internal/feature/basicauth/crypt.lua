-- The slow hashes of passwords. Runs in threads beside the worker, each in a
-- Lua of its own that has next to nothing of the worker's: see password.lua.
local bit = require "bit"
local ffi = require "ffi"

local _M = {}

local band = bit.band
local bor = bit.bor
local bxor = bit.bxor
local ffi_string = ffi.string
local string_byte = string.byte

ffi.cdef [[
char *crypt_r(const char *phrase, const char *setting, void *data);
int setpriority(int which, unsigned int who, int priority);
]]

-- More than the struct crypt_data of any libcrypt.
local DATA_BYTES = 256 * 1024
local LIBRARIES = { "libcrypt.so.1", "libcrypt.so.2", "crypt" }

local library, data


-- The thread is to leave the processor to the workers, which have requests of all
-- tenants to answer.
local PRIO_PROCESS, NICE = 0, 10


-- load finds libcrypt, once in each thread. -> true | nil, err
local function load()
    if library then
        return true
    end
    -- 0 is the calling thread. It never fails: priorities may always be lowered.
    ffi.C.setpriority(PRIO_PROCESS, 0, NICE)
    for _, name in ipairs(LIBRARIES) do
        local ok, loaded = pcall(ffi.load, name)
        if ok then
            data = ffi.new("char[?]", DATA_BYTES)
            library = loaded
            return true
        end
    end
    return nil, "libcrypt.so.1 is not installed"
end


-- equal(a, b) takes as long for strings that differ at once as for others.
function _M.equal(a, b)
    if #a ~= #b then
        return false
    end
    local differing = 0
    for i = 1, #a do
        differing = bor(differing, bxor(string_byte(a, i), string_byte(b, i)))
    end
    return differing == 0
end


local DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


local function digits(value, count)
    local text = ""
    for _ = 1, count do
        local digit = band(value, 63)
        text = text .. string.sub(DIGITS, digit + 1, digit + 1)
        value = bit.rshift(value, 6)
    end
    return text
end


local ROUNDS = 1000


-- apr1(password, salt) -> the hash that Apache writes behind "$apr1$SALT$".
function _M.apr1(password, salt)
    local sum = ngx.md5_bin(password .. salt .. password)
    local text = password .. "$apr1$" .. salt .. string.sub(string.rep(sum, math.ceil(#password / 16)), 1, #password)
    local length = #password
    while length > 0 do
        text = text .. (band(length, 1) == 1 and "\0" or string.sub(password, 1, 1))
        length = bit.rshift(length, 1)
    end
    sum = ngx.md5_bin(text)
    for round = 0, ROUNDS - 1 do
        local odd = band(round, 1) == 1
        sum = ngx.md5_bin((odd and password or sum) .. (round % 3 ~= 0 and salt or "") ..
            (round % 7 ~= 0 and password or "") .. (odd and sum or password))
    end
    local hash = ""
    for i = 1, 5 do
        -- Of the last three bytes the third is not the sixteenth but the sixth.
        local a, b, c = string_byte(sum, i), string_byte(sum, i + 6), string_byte(sum, i == 5 and 6 or i + 12)
        hash = hash .. digits(a * 65536 + b * 256 + c, 4)
    end
    return hash .. digits(string_byte(sum, 12), 2)
end


-- matches(password, hash) -> whether the password is that of the hash | nil, err
-- Neither holds a NUL.
function _M.matches(password, hash)
    local salt, rest = string.match(hash, "^%$apr1%$([^$]*)%$(.*)$")
    if salt then
        return _M.equal(_M.apr1(password, salt), rest)
    end
    local ok, err = load()
    if not ok then
        return nil, err
    end
    local result = library.crypt_r(password, hash, data)
    if result == nil then
        return false
    end
    result = ffi_string(result)
    -- A result that begins with a star is a failure.
    return string.find(result, "^%*") == nil and _M.equal(result, hash)
end


return _M
