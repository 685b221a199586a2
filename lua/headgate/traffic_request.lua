-- What NGINX knows about a request that is over: its sizes, and the times of its backend.
--
-- Lua gets that from variables, as text that NGINX makes for it, which takes more
-- instructions than all the rest of counting. The numbers themselves are in NGINX's memory.
-- Their places have been the same in all versions below, except one, which a worker learns
-- from its first requests: the length of the request is where memory has what the variable
-- says. Each worker reads all numbers in both ways until it knows that place, and later now
-- and then. If they ever differ, or with another NGINX, it stays with the variables. A build with
-- other structures may not even have memory there: while the places are not proven, the kernel is
-- asked before a pointer is followed.
local C = require("ffi").C
local ffi = require "ffi"
local log = require "headgate.log"
require "resty.core.var"

local _M = {}

local ffi_cast = ffi.cast
local ffi_new = ffi.new
local tonumber = tonumber

ffi.cdef [[
struct hg_traffic_state { uintptr_t status; intptr_t response_time, connect_time, header_time; };
struct hg_traffic_states { struct hg_traffic_state *first; uintptr_t count; size_t size; };
struct hg_traffic_connection { void *others[9]; int64_t sent; };
struct hg_traffic_request {
    uint32_t signature;
    struct hg_traffic_connection *connection;
    void *others[8];
    struct hg_traffic_states *states;
};
int pipe(int ends[2]);
int close(int fd);
ssize_t write(int fd, const void *buffer, size_t count);
]]

-- The variable that joins others: $request_length, $bytes_sent, and the backend's times.
local VARIABLE = "hg_traffic"
local lower_case = ffi_new("char[?]", #VARIABLE)
local value_pointer, value_length = ffi_new("char *[1]"), ffi_new("size_t[1]")
local message = ffi_new("char *[1]")

local ZERO, NINE, DOT, BAR = 48, 57, 46, 124

-- From the first version to before the last.
local FIRST_VERSION, LAST_VERSION = 1018000, 1030000
-- "HTTP"
local SIGNATURE = 0x50545448
-- The size of what NGINX has of each backend that was asked.
local STATE_SIZE = 72
-- NGINX's request is at the beginning of memory of 4,096 bytes, and about 1,300 bytes long.
local LONGEST = 2000
local WORD = 8
-- How many requests are read in both ways before memory is trusted, and then one of how many.
local LEARNED, CHECK = 32, 1024

local request_type = ffi.typeof("struct hg_traffic_request *")
local word_type = ffi.typeof("int64_t *")
local byte_type = ffi.typeof("uint8_t *")
local CONNECTION = ffi.sizeof("struct hg_traffic_connection")
local STATES = ffi.sizeof("struct hg_traffic_states")
local ends = ffi_new("int[2]")

-- The offset of the request's length, once it is known.
local length_at
-- Offsets that it may be at, nil before the first request. false: memory is never read.
local candidates
local compared = 0
-- How many of these a backend was asked for.
local followed = 0
local until_check = 0


-- supported reports whether this NGINX is one whose memory is known.
local function supported()
    local version = ngx.config.nginx_version
    return version >= FIRST_VERSION and version < LAST_VERSION and ffi.abi("64bit")
        and not string.find(ngx.config.nginx_configure(), "--without-http-cache", 1, true)
end


if not supported() then
    candidates = false
end


-- number reads a number of the variable, without its dot. -> the number, -1 if there is none
-- or there are several; where the next one begins
local function number(text, i, length)
    local value, single = -1, true
    while i < length do
        local c = text[i]
        i = i + 1
        if c >= ZERO and c <= NINE then
            value = (value < 0 and 0 or value * 10) + c - ZERO
        elseif c == BAR then
            break
        elseif c ~= DOT then
            single = false
        end
    end
    return single and value or -1, i
end


-- by_variable(r) -> what read returns
local function by_variable(r)
    if C.ngx_http_lua_ffi_var_get(r, VARIABLE, #VARIABLE, lower_case, 0, value_pointer, value_length, message) ~= 0 then
        return -1, -1, -1, -1, -1
    end
    local text, length = value_pointer[0], tonumber(value_length[0])
    local received, sent, connect, header, response, i
    received, i = number(text, 0, length)
    sent, i = number(text, i, length)
    connect, i = number(text, i, length)
    header, i = number(text, i, length)
    response = number(text, i, length)
    return received, sent, connect, header, response
end


-- milliseconds(value) -> a time as NGINX writes it, -1 for none
local function milliseconds(value)
    value = tonumber(value)
    return value < -1 and 0 or value
end


-- in_memory(r) -> what read returns, without the request's length
local function in_memory(r)
    local request = ffi_cast(request_type, r)
    local sent = tonumber(request.connection.sent)
    local states = request.states
    if states == nil or states.count ~= 1 then
        return sent, -1, -1, -1
    end
    local state = states.first
    return sent, milliseconds(state.connect_time), milliseconds(state.header_time), milliseconds(state.response_time)
end


local function word(r, offset)
    return tonumber(ffi_cast(word_type, ffi_cast(byte_type, r) + offset)[0])
end


-- readable reports whether there is memory. It is the kernel that reads it, which fails where a
-- worker would die.
local function readable(pointer, size)
    if C.pipe(ends) ~= 0 then
        return false
    end
    local written = C.write(ends[1], pointer, size)
    C.close(ends[0])
    C.close(ends[1])
    return written == size
end


-- is_known reports whether the request's memory looks as it must, and whether there is memory
-- where it points to.
local function is_known(r)
    local request = ffi_cast(request_type, r)
    if request.signature ~= SIGNATURE or not readable(r, LONGEST + WORD)
        or not readable(request.connection, CONNECTION) then
        return false
    end
    local states = request.states
    if states == nil then
        return true
    end
    return readable(states, STATES) and states.size == STATE_SIZE
        and (states.count ~= 1 or readable(states.first, STATE_SIZE))
end


-- places(r, received) -> the candidates that have the request's length
local function places(r, received)
    local list = {}
    if not candidates then
        for offset = ffi.sizeof("struct hg_traffic_request"), LONGEST, WORD do
            if word(r, offset) == received then
                list[#list + 1] = offset
            end
        end
        return list
    end
    for _, offset in ipairs(candidates) do
        if word(r, offset) == received then
            list[#list + 1] = offset
        end
    end
    return list
end


-- compare(r) -> what read returns, in both ways
local function compare(r)
    until_check = CHECK
    local received, sent, connect, header, response = by_variable(r)
    if candidates == false or received < 0 then
        return received, sent, connect, header, response
    end
    local list, same = {}, false
    if is_known(r) then
        local sent_too, connect_too, header_too, response_too = in_memory(r)
        same = sent == sent_too and connect == connect_too and header == header_too and response == response_too
        list = places(r, received)
    end
    candidates, length_at = list, nil
    if not same or #list == 0 then
        candidates = false
        log.err("count requests: NGINX's memory is not as expected: reading variables instead")
        return received, sent, connect, header, response
    end
    compared = compared + 1
    if ffi_cast(request_type, r).states ~= nil then
        followed = followed + 1
    end
    if #list == 1 and compared >= LEARNED then
        length_at = list[1]
    end
    return received, sent, connect, header, response
end


-- read(r) -> the bytes of the request, those that were sent, and in milliseconds the times
-- of its only backend until the connection, the header and the end; -1 for what there is not.
function _M.read(r)
    until_check = until_check - 1
    if not length_at or until_check < 0 or followed < LEARNED and ffi_cast(request_type, r).states ~= nil then
        return compare(r)
    end
    return word(r, length_at), in_memory(r)
end


return _M
