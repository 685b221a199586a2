-- What NGINX's HTTP/3 lacks for the end of a worker.
local ffi = require "ffi"
local settings = require "headgate.settings"

local _M = {}

local C = ffi.C

ffi.cdef[[
int epoll_ctl(int epfd, int op, int fd, void *event);
int getsockopt(int fd, int level, int name, void *value, unsigned int *length);
int getsockname(int fd, void *address, unsigned int *length);
]]

local EPOLL_CTL_DEL, ENOENT = 2, 2
local SOL_SOCKET, SO_PROTOCOL = 1, 38
local IPPROTO_UDP = 17
-- The master opens them: their numbers are low.
local MOST = 4096

local int = ffi.typeof("int[1]")
local length = ffi.typeof("unsigned int[1]")


-- is_listener reports whether a file is a socket for HTTP/3.
local function is_listener(fd)
    local protocol = int()
    if C.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, protocol, length(4)) ~= 0 or protocol[0] ~= IPPROTO_UDP then
        return false
    end
    -- The port stands at the same place for IPv4 and IPv6.
    local address = ffi.new("unsigned char[128]")
    return C.getsockname(fd, address, length(128)) == 0 and address[2] * 256 + address[3] == settings.https_port
end


-- Stops reading from the sockets for HTTP/3. After a reload, NGINX's old and new workers read from
-- the same ones: each gets packets that are for the other, and no client can connect until the old
-- ones are gone. An old worker can still send: the responses that it owes, and that a connection ends.
function _M.stop()
    for fd = 0, MOST do
        if is_listener(fd) then
            -- Only one file is what NGINX waits with; others refuse.
            for epoll = 0, MOST do
                -- ENOENT: it is an epoll, but does not have the socket, which is that of another worker.
                if C.epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nil) == 0 or ffi.errno() == ENOENT then
                    break
                end
            end
        end
    end
end


return _M
