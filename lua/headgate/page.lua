-- Memory that NGINX's master and all of its workers share: numbers, which are read without a
-- lock.
--
-- The master maps it and its workers inherit it, those of later configurations and
-- those that replace a crashed one too. No file is needed. A number is one aligned
-- word: a reader gets what was there before a write or after it, nothing in between.
local ffi = require "ffi"

local _M = {}

local C = ffi.C
local ffi_cast = ffi.cast

ffi.cdef [[
void *mmap(void *addr, size_t length, int prot, int flags, int fd, long offset);
]]

local BYTES = 4096
local READ_WRITE = 3
-- Of Linux.
local SHARED_ANONYMOUS = 0x21


-- new(bytes) -> the address of new memory that is all 0, of a page unless bytes says more; nil
-- if the system gives none. To be called in the master: the address means nothing to processes
-- that are not its children.
function _M.new(bytes)
    local address = ffi_cast("intptr_t", C.mmap(nil, bytes or BYTES, READ_WRITE, SHARED_ANONYMOUS, -1, 0))
    return address ~= -1 and tonumber(address) or nil
end


-- at(address) -> the page's number, at index 0.
function _M.at(address)
    return ffi_cast("double *", ffi_cast("intptr_t", address))
end


return _M
