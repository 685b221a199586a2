-- Lists of networks, as Networks in internal/syntax/address/networks.go packs them: the number of
-- bounds of IPv4 in four bytes, these bounds in four bytes each, those of IPv6 in sixteen.
-- Bounds are by turns the first address that is in the list, and the first one behind that
-- is not: an address is in it if an odd number of them is not above it.
local bit = require "bit"
local ffi = require "ffi"

local _M = {}

local C = ffi.C
local band = bit.band
local ffi_cast = ffi.cast
local rshift = bit.rshift
local string_byte = string.byte

local FOUR, SIX = 4, 16
local HEAD = 4

ffi.cdef [[
int memcmp(const void *a, const void *b, size_t size);
int inet_pton(int family, const char *text, void *address);
]]

local bytes = ffi.typeof("const uint8_t *")


-- The families of addresses on Linux.
local FAMILIES = { [FOUR] = 2, [SIX] = 10 }

local parsed = ffi.new("uint8_t[?]", SIX)


-- The bytes of an address that is written as text, nil if it is none.
function _M.packed(text)
    for size, family in pairs(FAMILIES) do
        if C.inet_pton(family, text, parsed) == 1 then
            return ffi.string(parsed, size)
        end
    end
    return nil
end


-- Reports whether an address, as client.address gives it, is in a list.
function _M.has(list, address)
    local a, b, c, d = string_byte(list, 1, HEAD)
    local four = ((a * 256 + b) * 256 + c) * 256 + d
    local width = #address
    local from, high = HEAD, four
    if width == SIX then
        from = HEAD + FOUR * four
        high = (#list - from) / SIX
    end
    local bounds = ffi_cast(bytes, list) + from
    local low = 0
    while low < high do
        local middle = rshift(low + high, 1)
        if C.memcmp(bounds + middle * width, address, width) <= 0 then
            low = middle + 1
        else
            high = middle
        end
    end
    return band(low, 1) == 1
end


return _M
