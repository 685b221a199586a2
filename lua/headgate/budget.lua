-- The time that regular expressions take, by their owners: the namespaces of the
-- Ingresses that they come from. What one owner's expressions take from a worker is
-- bounded, no matter which clients send the requests; expressions of others are not affected.
--
-- Each owner has a token bucket of the worker's time. The callers look at it before
-- each expression and charge each one. So the last one before the bucket is empty may
-- take more than is left, up to the match limit; the bucket pays that back before it
-- opens again.
local ffi = require "ffi"
local log = require "headgate.log"
local memory = require "headgate.memory"

local _M = {}

local C = ffi.C
local math_max = math.max
local math_min = math.min
local ngx_now = ngx.now
local tonumber = tonumber

ffi.cdef [[
struct headgate_timespec { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct headgate_timespec *time);
]]

-- CLOCK_THREAD_CPUTIME_ID of Linux: without the time of other threads and processes.
local THREAD = 3

-- What a bucket gets per second, and what it holds, in seconds of the worker's time.
local RATE = 0.02
local BURST = 0.05
-- What is free in each request: not more than NGINX itself takes for a request. Else a
-- busy host with ordinary expressions would empty its bucket.
local FREE = 0.0001
-- What is free at an expression's first match: its compilation, which each worker does
-- once, usually takes 0.07 ms. Else a new worker would refuse a host with many.
local COMPILE = 0.0001

local time = ffi.new("struct headgate_timespec")
local buckets = {}
local visits = 0


-- The seconds that the worker has computed so far.
function _M.clock()
    C.clock_gettime(THREAD, time)
    return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end


-- of(owner) -> the bucket of an owner, a namespace; "" if no Ingress is.
function _M.of(owner)
    local bucket = buckets[owner]
    if not bucket then
        bucket = { owner = owner, left = BURST, at = ngx_now(), visit = 0, free = 0 }
        buckets[owner] = bucket
    end
    return bucket
end


-- visit() -> the number of a request, for charge.
function _M.visit()
    visits = visits + 1
    return visits
end


-- is_open reports whether an expression of the owner may be tried.
function _M.is_open(bucket)
    local now = ngx_now()
    if now ~= bucket.at then
        -- The clock may be set back.
        if now > bucket.at then
            bucket.left = math_min(BURST, bucket.left + (now - bucket.at) * RATE)
        end
        bucket.at = now
    end
    return bucket.left > 0
end


-- Charges the seconds that an expression took. visit: the request that it was tried
-- for. first: whether it was the expression's first match in this worker.
function _M.charge(bucket, visit, seconds, first)
    if first then
        seconds = math_max(0, seconds - COMPILE)
    end
    if bucket.visit ~= visit then
        bucket.visit, bucket.free = visit, FREE
    end
    if seconds <= bucket.free then
        bucket.free = bucket.free - seconds
        return
    end
    bucket.left = bucket.left - (seconds - bucket.free)
    bucket.free = 0
end


-- Counts a request with expressions that are not tried because the bucket is empty. The
-- log gets one line a minute about an owner.
function _M.refuse(bucket, visit)
    if bucket.refused == visit then
        return
    end
    bucket.refused = visit
    if memory.count_refusal(bucket.owner) then
        log.err("namespace ", bucket.owner, ": its regular expressions take more than ", RATE * 1000,
            " ms a second in a worker: requests that need them are answered 503")
    end
end


-- Reports whether the log may have a line about a failing expression: one a minute for
-- each owner.
function _M.may_log(bucket)
    return memory.may_log(bucket.owner)
end


return _M
