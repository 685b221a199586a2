-- What NGINX's HTTP/3 lacks for the end of a worker.
local base = require "resty.core.base"
local ffi = require "ffi"
local settings = require "headgate.settings"

local _M = {}

local C = ffi.C
local get_request = base.get_request
local ngx_var = ngx.var

ffi.cdef[[
int epoll_ctl(int epfd, int op, int fd, void *event);
int getsockopt(int fd, int level, int name, void *value, unsigned int *length);
int getsockname(int fd, void *address, unsigned int *length);

/* The beginning of ngx_http_request_t, the same in all versions of NGINX. */
typedef struct {
    unsigned int signature;
    void *connection;
} headgate_request_t;

long ngx_http_v3_send_goaway(void *connection, uint64_t id);
]]

-- NGX_HTTP_MODULE, with which NGINX marks a request.
local SIGNATURE = 0x50545448
local request_type = ffi.typeof("headgate_request_t *")
-- The largest identifier that a request can have: nothing that the client has sent is excluded.
local LAST_ID = 4611686018427387900ULL
-- NGINX itself sends GOAWAY when a connection had client_requests requests or is an hour old, and
-- identifiers must not grow. A client has at most 128 requests under way.
local LAST_REQUESTS, LAST_SECONDS = 128, 3500

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


-- Asks the client of the request that runs to use another connection from now on (GOAWAY). All that
-- it has sent, or sends before it knows, is answered. NGINX itself asks only when it exits, and ends a
-- connection without requests in the same moment: a request that is on its way is lost.
function _M.leave()
    if tonumber(ngx_var.connection_requests) > settings.client_requests - LAST_REQUESTS
        or tonumber(ngx_var.connection_time) > LAST_SECONDS
    then
        return
    end
    local request = ffi.cast(request_type, get_request())
    if request.signature == SIGNATURE then
        C.ngx_http_v3_send_goaway(request.connection, LAST_ID)
    end
end


return _M
