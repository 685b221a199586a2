-- The access log's pipe: where the controller reads it, a controller that hangs would
-- make all requests wait as soon as the pipe is full. NGINX opens it by name, which is
-- another open file than that of the controller, so only NGINX can make it one that
-- is not waited for. It ignores that a line does not fit.
local ffi = require "ffi"

local _M = {}

ffi.cdef [[
long readlink(const char *path, char *buffer, unsigned long size);
int fcntl(int fd, int command, ...);
]]

-- The descriptor of the pipe that the controller passes (accesslog.go).
local PASSED = 3
-- Log files are opened before anything else, and have low numbers.
local MOST = 1024
local NAME_BYTES = 64
local F_GETFL, F_SETFL, O_NONBLOCK = 3, 4, 2048

local C = ffi.C


-- -> what a descriptor stands for, nil if it is not open.
local function target_of(fd, buffer)
    local length = C.readlink("/proc/self/fd/" .. fd, buffer, NAME_BYTES)
    return length > 0 and ffi.string(buffer, length) or nil
end


-- Runs in the master, when the files of a configuration are open.
function _M.unblock()
    local buffer = ffi.new("char[?]", NAME_BYTES)
    local pipe = target_of(PASSED, buffer)
    for fd = PASSED + 1, MOST do
        if pipe and target_of(fd, buffer) == pipe then
            local flags = C.fcntl(fd, F_GETFL)
            C.fcntl(fd, F_SETFL, ffi.new("int", require("bit").bor(flags, O_NONBLOCK)))
        end
    end
end


return _M
