-- What the process of this Lua asks of the kernel.
local ffi = require "ffi"

local _M = {}

ffi.cdef [[
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
]]

local SET_DUMPABLE = 4


-- Closes the memory of this process, which holds all private keys, to other processes
-- of its user, and keeps it out of core dumps. NGINX opens it in each worker, and
-- processes inherit it.
function _M.close_memory()
    if ffi.C.prctl(SET_DUMPABLE, 0, 0, 0, 0) ~= 0 then
        error("close the memory of the process: " .. ffi.errno())
    end
end


return _M
