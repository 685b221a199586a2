-- The time that regular expressions and the decoding of units take, by their owners: the
-- namespaces of the Ingresses that they come from. What is one owner's takes a bounded part
-- of a worker's time, no matter which clients send the requests; others are not affected.
--
-- Each owner has two token buckets of the worker's time, which are looked at before each
-- expression or unit, and charged for it. So the last one before the bucket is empty may
-- take more than is left, up to the match limit or the time for the largest unit; the
-- bucket pays that back before it opens again.
--
-- To read the clock takes as long as an ordinary match, on some machines. So of an owner
-- whose expressions are quick, one request of some is measured, and stands for the others:
-- see sample.
local ffi = require "ffi"
local counters = require "headgate.counters"
local log = require "headgate.log"
local memory = require "headgate.memory"

local _M = {}

local C = ffi.C
local math_max = math.max
local math_min = math.min
local math_random = math.random
local ngx_now = ngx.now
local tonumber = tonumber

ffi.cdef [[
struct headgate_timespec { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct headgate_timespec *time);
]]

-- CLOCK_THREAD_CPUTIME_ID of Linux: without the time of other threads and processes.
local THREAD = 3

-- The two purposes: what a bucket gets per second, and what it holds, in seconds of the
-- worker's time; the reason in metrics, and what the log says behind the namespace.
local EXPRESSIONS = {
    rate = 0.02, burst = 0.05, reason = "regex",
    message = ": its regular expressions take more than 20 ms a second in a worker: requests that need them are "
        .. "answered 503",
}
-- The burst is more than it takes to decode all hosts that a worker can hold, so that those
-- of a namespace are served by a new worker at once.
local DECODING = {
    rate = 0.1, burst = 0.5, reason = "decoding",
    message = ": decoding its hosts and certificates takes more than 100 ms a second in a worker: requests for those "
        .. "that the worker does not hold are answered 503",
}
-- What is free in each request: not more than NGINX itself takes for a request. Else a
-- busy host with ordinary expressions would empty its bucket.
local FREE = 0.0001
-- What is free at an expression's first match: its compilation, which each worker does
-- once, usually takes 0.07 ms. Else a new worker would refuse a host with many.
local COMPILE = 0.0001

-- One request of so many is measured, at random: no client knows which one.
local EVERY = 4
-- What a match may take, in seconds, for the next requests of its owner to be measured like that;
-- behind a slower one, so many of them are measured all.
local QUICK = 0.00005
local CLOSE_LOOK = 64
-- So many matches of a request that is not measured are not: its other ones are.
local UNMEASURED = 2

-- How often an expression may fail before it is given up.
local MAX_STRIKES = 20

-- How many seconds of an owner a worker keeps to itself.
local UNTOLD = 0.01

local LATE = "the expressions of its namespace took too long"

local time = ffi.new("struct headgate_timespec")
local expressions, decoding = {}, {}
local visits = 0


-- The seconds that the worker has computed so far.
local function clock()
    C.clock_gettime(THREAD, time)
    return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end
_M.clock = clock


local function bucket_of(buckets, owner, purpose)
    local bucket = buckets[owner]
    if not bucket then
        bucket = {
            owner = owner, purpose = purpose, rate = purpose.rate, burst = purpose.burst, left = purpose.burst,
            at = ngx_now(), taken = 0,
            -- Of the request of this number: what is left of what is free for it, its matches so far, and
            -- for how many requests it stands, nil if it is not measured.
            visit = 0, free = 0, matches = 0, stands_for = nil,
            -- How many requests are not measured until the next one is; how many are measured at least.
            skip = 0, close_look = CLOSE_LOOK,
        }
        buckets[owner] = bucket
    end
    return bucket
end


-- of(owner) -> the bucket for expressions of an owner, a namespace; "" if no Ingress is.
function _M.of(owner)
    return bucket_of(expressions, owner, EXPRESSIONS)
end


-- visit() -> the number of a request, for try.
function _M.visit()
    visits = visits + 1
    return visits
end


-- is_open reports whether there is time left.
local function is_open(bucket)
    local now = ngx_now()
    if now ~= bucket.at then
        -- The clock may be set back.
        if now > bucket.at then
            bucket.left = math_min(bucket.burst, bucket.left + (now - bucket.at) * bucket.rate)
        end
        bucket.at = now
    end
    return bucket.left > 0
end


-- take adds up the seconds of an owner, for metrics.
local function take(bucket, seconds)
    local taken = bucket.taken + seconds
    if taken >= UNTOLD and bucket.owner ~= "" then
        counters.add_time(bucket.purpose.reason, bucket.owner, taken)
        taken = 0
    end
    bucket.taken = taken
end


-- begin begins a request of an owner.
local function begin(bucket, visit)
    bucket.visit, bucket.free, bucket.matches = visit, FREE, 0
    if bucket.close_look > 0 then
        bucket.close_look, bucket.stands_for = bucket.close_look - 1, 1
    elseif bucket.skip > 0 then
        bucket.skip, bucket.stands_for = bucket.skip - 1, nil
    else
        bucket.skip, bucket.stands_for = math_random(0, 2 * (EVERY - 1)), EVERY
    end
end


-- charge charges the seconds that an expression took, in a request that stands for so many.
local function charge(bucket, seconds, first, requests)
    take(bucket, seconds * requests)
    if first then
        seconds = math_max(0, seconds - COMPILE)
    end
    if seconds <= bucket.free then
        bucket.free = bucket.free - seconds
        return
    end
    bucket.left = bucket.left - (seconds - bucket.free) * requests
    bucket.free = 0
end


-- refuse counts a request that is refused because the bucket is empty. The log gets one
-- line a minute about an owner.
local function refuse(bucket, visit)
    if bucket.refused == visit then
        return
    end
    bucket.refused = visit
    if counters.refuse(bucket.purpose.reason, bucket.owner) then
        log.err("namespace ", bucket.owner, bucket.purpose.message)
    end
end


-- try(bucket, visit, run, text, pattern, options, first, started) calls ngx.re's find or
-- match on the time of an owner.
--   visit: the request that it is for
--   first: whether it is the expression's first match in this worker
--   started: the clock, if it is known: what try returned for the expression just before
-- -> what run returns, up to three values, and the clock | nil, nil, err, nil: the
-- owner's time is up
function _M.try(bucket, visit, run, text, pattern, options, first, started)
    if not is_open(bucket) then
        refuse(bucket, visit)
        return nil, nil, LATE
    end
    if bucket.visit ~= visit then
        begin(bucket, visit)
    end
    started = started or clock()
    local found, to, err = run(text, pattern, options)
    local now = clock()
    charge(bucket, now - started, first, 1)
    return found, to, err, now
end


-- sample does as try, and need not read the clock, which it returns as 0 then. On average an
-- owner is charged what its expressions take. If quick ones become slow, that is noticed with
-- one request of EVERY on average, and of 2 * EVERY - 1 at most, each with up to UNMEASURED
-- matches.
function _M.sample(bucket, visit, run, text, pattern, options, first, started)
    if not is_open(bucket) then
        refuse(bucket, visit)
        return nil, nil, LATE
    end
    if bucket.visit ~= visit then
        begin(bucket, visit)
    end
    bucket.matches = bucket.matches + 1
    local requests = bucket.stands_for
    if not requests and not first and bucket.matches <= UNMEASURED then
        local found, to, err = run(text, pattern, options)
        return found, to, err, 0
    end
    if not started or started == 0 then
        started = clock()
    end
    local found, to, err = run(text, pattern, options)
    local now = clock()
    -- Each is compiled once: that stands for no other request.
    charge(bucket, now - started, first, not first and requests or 1)
    if now - started > QUICK and not first then
        bucket.close_look = CLOSE_LOOK
    end
    return found, to, err, now
end


-- Reports whether an expression, which strike was called for, is given up.
function _M.given_up(expression)
    return expression.strikes >= MAX_STRIKES
end


-- strike(expression, unit, host, err, effect) counts a failure of an expression. The log
-- gets two lines for it, and not one for each request. An expression that is given up is
-- reported to the controller.
--   expression: has the fields strikes, pattern, bucket and ingress
--   unit: the key of the unit that it is in: it has no strikes when that changes
--   effect: what happens when it is given up
function _M.strike(expression, unit, host, err, effect)
    expression.strikes = expression.strikes + 1
    local owner = expression.bucket.owner
    if expression.strikes == 1 then
        log.err("host ", host, ": match ", expression.pattern, ", of namespace ", owner, ": ", err)
    elseif expression.strikes == MAX_STRIKES then
        -- Another place than the first line's, or it could be left out.
        log.err("host ", host, ": give up ", expression.pattern, ", of namespace ", owner, ": failed ", MAX_STRIKES,
            " times: ", effect)
        memory.note_given_up(unit, host, owner, expression.ingress, expression.pattern)
    end
end


-- Charges the seconds that it took to decode a unit, if they are more than 0.
function _M.charge_decoding(owner, seconds)
    if seconds > 0 then
        local bucket = bucket_of(decoding, owner, DECODING)
        take(bucket, seconds)
        -- It gets what is due until now before it is full no more.
        is_open(bucket)
        -- What must be decoded in any case does not close it for long.
        bucket.left = math_max(bucket.left - seconds, -bucket.burst)
    end
end


-- refuses_decoding reports whether an owner's time for decoding is up, and counts it.
function _M.refuses_decoding(owner)
    local bucket = decoding[owner]
    if not bucket or is_open(bucket) then
        return false
    end
    refuse(bucket, _M.visit())
    return true
end


-- Reports whether the log may have a line about a failing expression: one a minute for
-- each owner.
function _M.may_log(bucket)
    return counters.may_log(bucket.purpose.reason, bucket.owner)
end


return _M
