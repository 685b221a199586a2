-- Memory that NGINX's master and all of its workers share: one number, which is read
-- without a lock.
--
-- The master maps a page and its workers inherit it, those of later configurations and
-- those that replace a crashed one too. No file is needed. The number is one aligned
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


-- new() -> the address of a new page, nil if the system gives none. To be called in the
-- master: the address means nothing to processes that are not its children.
function _M.new()
    local address = ffi_cast("intptr_t", C.mmap(nil, BYTES, READ_WRITE, SHARED_ANONYMOUS, -1, 0))
    return address ~= -1 and tonumber(address) or nil
end


-- at(address) -> the page's number, at index 0.
function _M.at(address)
    return ffi_cast("double *", ffi_cast("intptr_t", address))
end


return _M
