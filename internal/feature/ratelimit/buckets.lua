-- Leaky buckets, as NGINX's limit_req counts.
--
-- A counter is the time, in milliseconds of NGINX's clock, at which its bucket will have leaked
-- to what NGINX calls an excess of 0. A request adds the time in which one leaks. Workers share the
-- counters without a lock: what a request adds, it adds at once (incr), and takes back
-- if the bucket had no room.
local ffi = require "ffi"
local owners = require "headgate.feature.rate_limit.owners"

local _M = {}

local C = ffi.C
local math_max = math.max
local string_byte = string.byte
local tonumber = tonumber

local dictionary = ngx.shared.hg_buckets

ffi.cdef [[
extern volatile uintptr_t ngx_current_msec;
]]

-- Rates are in thousandths of a request a second, as NGINX has them: a request takes COST / rate
-- milliseconds.
local COST = 1000000
-- A part of a request that rounding may add.
local ROUNDING = 0.0005
-- After this time a counter of a kind is as good as none, in milliseconds: that in which one
-- request leaks at the lowest rate.
local LONGEST = { s = 1000, m = COST / 16 }
-- Where the kind is in a key, behind the Ingress's ID.
local KIND = 13
local PER_MINUTE = string_byte("m")


local function is_idle(key, until_empty)
    local longest = string_byte(key, KIND) == PER_MINUTE and LONGEST.m or LONGEST.s
    return until_empty + longest <= tonumber(C.ngx_current_msec)
end


-- add counts a request. before: the counter that was read, or nil. -> the counter, and whether
-- it counts
local function add(key, before, now, cost, namespace)
    if not before then
        if not owners.reserve(dictionary, "requests", namespace, key, is_idle) then
            return now, false
        end
        return dictionary:incr(key, cost, now - cost) or now, true
    end
    -- Without an excess, the first request adds none.
    local step = math_max(cost, now - before)
    local after = dictionary:incr(key, step)
    if after and step > cost and after ~= before + step then
        -- Another worker has begun at the same time.
        after = dictionary:incr(key, cost - step)
    end
    return after or now, true
end


-- one(bucket, key, now, namespace) -> whether there is room, and what counted
local function one(bucket, key, before, now, namespace)
    local cost = COST / bucket.rate
    local after, counts = add(key, before, now, cost, namespace)
    if (after - now) / cost <= bucket.burst + ROUNDING then
        return true, counts and cost
    end
    dictionary:incr(key, -cost)
    return false
end


local function has_room(bucket, before, now)
    return not before or (before - now) / (COST / bucket.rate) + 1 <= bucket.burst + ROUNDING
end


-- take(policy, client, namespace) -> whether the buckets of a policy have room for a
-- request of a client. If one has not, the request counts in none.
function _M.take(policy, client, namespace)
    local now = tonumber(C.ngx_current_msec)
    local list = policy.buckets
    local first, second = list[1], list[2]
    local first_key = policy.id .. first.kind .. client
    local first_before = dictionary:get(first_key)
    if not has_room(first, first_before, now) then
        return false
    end
    if not second then
        return (one(first, first_key, first_before, now, namespace))
    end
    local second_key = policy.id .. second.kind .. client
    local second_before = dictionary:get(second_key)
    if not has_room(second, second_before, now) then
        return false
    end
    local room, counted = one(first, first_key, first_before, now, namespace)
    if room and not one(second, second_key, second_before, now, namespace) then
        if counted then
            dictionary:incr(first_key, -counted)
        end
        return false
    end
    return room
end


return _M
