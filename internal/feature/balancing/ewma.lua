-- Peak EWMA: of two endpoints at random, the one with the lower cost. An endpoint's cost
-- is the moving average of its connect and response times, more with requests of this worker in
-- progress there. A response that is slower than the average counts at once; faster ones bring
-- it down, each by a tenth or more. An average falls too while its endpoint is not asked, so that
-- one that was slow is tried again: once, until it has responded. Before the first response, the
-- time for which that is awaited counts: else a busy worker would begin by asking the slowest
-- endpoint most of all.
local endpoints = require "headgate.feature.balancing.endpoints"

local _M = {}

local math_exp = math.exp
local math_max = math.max
local math_min = math.min
local ngx_now = ngx.now
local setmetatable = setmetatable

-- The time in which an average falls to 1/e, in seconds.
local DECAY = 10
-- What a faster response leaves of the difference to it, at most. By time alone, one slow
-- response of a hundred would make a busy endpoint look as slow as that all the time, and so
-- no better than one that is.
local KEPT = 0.9
-- How many requests in progress count: each makes an endpoint as dear as one that is slower by
-- its average. With more, a busy worker would use an endpoint that is ten times slower.
local COUNTED = 3
-- The least that a failed try counts for, in seconds: an endpoint that fails fast must not
-- look good.
local FAILED = 1
-- A response counts for at most as much: a WebSocket that is open for an hour does not make
-- its endpoint slow for long.
local SLOWEST = 60

local methods = {}
local meta = { __index = methods }


-- The average at a time. asked: when the endpoint was last asked; first: when for the first
-- time, false if never, nil once it has responded.
local function average(state, now)
    local value, first = state.average, state.first
    if first then
        -- A request that takes hours, as a WebSocket does, is no more than a failed one.
        value = math_max(value, math_min(now - first, FAILED))
    end
    local since = now - state.asked
    -- The clock may be set back.
    return since > 0 and value * math_exp(-since / DECAY) or value
end


function _M.new(_, backend, before)
    local now = ngx_now()
    -- A new endpoint begins as an average one does. Else all requests would go there.
    local sum, count = 0, 0
    if before then
        for _, state in ipairs(before.states) do
            sum, count = sum + average(state, now), count + 1
        end
    end
    local start = count > 0 and sum / count or 0
    local states = endpoints.states(backend, before, function()
        return { average = start, at = now, asked = now, first = false, active = 0 }
    end)
    return setmetatable({ backend = backend, states = states }, meta)
end


local function cost(state, now)
    return average(state, now) * (math_min(state.active, COUNTED) + 1)
end


function methods.pick(self, _, avoid)
    local a, b = endpoints.two(self.backend.count, avoid)
    local states, now = self.states, ngx_now()
    local index = a
    if b then
        local cost_a, cost_b = cost(states[a], now), cost(states[b], now)
        -- Before the first responses, what is in progress decides.
        if cost_b < cost_a or cost_b == cost_a and states[b].active < states[a].active then
            index = b
        end
    end
    local state = states[index]
    state.active, state.asked = state.active + 1, now
    if state.first == false then
        state.first = now
    end
    return index
end


-- The highest average of all endpoints.
local function highest(states, now)
    local most = 0
    for i = 1, #states do
        most = math_max(most, average(states[i], now))
    end
    return most
end


function methods.done(self, index, status, connect_time, response_time)
    local state, now = self.states[index], ngx_now()
    state.active = state.active - 1
    local took = (connect_time or 0) + (response_time or 0)
    if not status or status >= 500 then
        took = math_max(took, FAILED, highest(self.states, now))
    elseif not response_time then
        return
    end
    took = math_min(took, SLOWEST)
    state.first = nil
    local old = state.average
    if took < old then
        local weight = math_min(KEPT, math_exp(-math_max(0, now - state.at) / DECAY))
        took = old * weight + took * (1 - weight)
    end
    state.average, state.at = took, now
end


return _M
