-- Regular expressions of tenants, for text of clients and backends. The match limit
-- bounds each one. The callers bound the time of several together, with the clock of
-- this module.
local ffi = require "ffi"

local _M = {}

local C = ffi.C
local ngx_re_find = ngx.re.find
local tonumber = tonumber

ffi.cdef [[
struct headgate_timespec { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct headgate_timespec *time);
]]

-- CLOCK_THREAD_CPUTIME_ID of Linux: without the time of other threads and processes.
local THREAD = 3

-- The time limit for the expressions of a request's features together, in seconds.
local BUDGET = 0.1

local time = ffi.new("struct headgate_timespec")


-- The seconds that the worker has computed so far.
local function clock()
    C.clock_gettime(THREAD, time)
    return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end
_M.clock = clock


-- find(request, text, pattern, options) -> where the pattern matches, nil if it
-- does not | nil, err
function _M.find(request, text, pattern, options)
    local spent = request.regex_seconds or 0
    if spent > BUDGET then
        return nil, "the patterns before it took too long"
    end
    local started = clock()
    local from, _, err = ngx_re_find(text, pattern, options)
    request.regex_seconds = spent + clock() - started
    return from, err
end


return _M
