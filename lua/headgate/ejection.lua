-- Ejection: from which failures on requests avoid an endpoint (health.lua), and until when.
--
-- A try that fails is known when NGINX asks for the next endpoint: requests that succeed
-- pay nothing. An endpoint to which no connection can be made is ejected until a probe of the
-- worker's own connects to it (probe.lua): at once if a request waited long for that, else when
-- a probe has failed as well, since a kept connection that the backend has just closed, a
-- failed TLS handshake and a lack of local ports look the same. By a rule (ejection:
-- failures), an endpoint is also ejected for a time, after failures in a row.
local counters = require "headgate.counters"
local failure = require "headgate.failure"
local healths = require "headgate.health"
local log = require "headgate.log"
local memory = require "headgate.memory"
local probe = require "headgate.probe"

local _M = {}

local forget = healths.forget
local index_of = healths.index_of
local math_floor = math.floor
local math_min = math.min
local newest = healths.newest
local ngx_now = ngx.now
local ngx_var = ngx.var
local pairs = pairs
local refresh = healths.refresh
local state_of = healths.state_of
local string_find = string.find
local table_sort = table.sort
local values = failure.values
local worker_exiting = ngx.worker.exiting

-- NGINX's status for a try that took too long.
local TIMED_OUT = 504

-- How many times the time of the first ejection by failures the longest one is.
local LONGEST = 10

-- In seconds: how long an endpoint is not suspected again when a probe has connected to it.
local SUSPECTED = 1

-- NGINX's status for a client that has left.
local LEFT = 499


-- eject(state, reason, why) ejects an endpoint.
local function eject(state, reason, why)
    local now = ngx_now()
    local health = state.health
    -- One that has failed again soon goes on where it was.
    state.step = state.back and now - state.back < probe.SOON and state.step + 1 or 0
    state.since, state.reason, state.changed, state.failures = now, reason, now, 0
    if reason == "connect" then
        state.due = now + probe.wait(state.step)
    else
        local time = health.backend.rule.time
        state.due = now + math_min(time * (state.step + 1), time * LONGEST)
    end
    counters.eject(reason, health.namespace)
    log.err("namespace ", health.namespace, ": endpoint ", state.endpoint, " of backend ", health.backend.name,
        " is ejected: ", why)
    refresh(health)
end


-- A worker that ends can't probe.
local function is_ignored(backend)
    return backend.rule.off or backend.count < 2 or not backend.name or worker_exiting()
end


-- Notes that no connection was made to an endpoint.
--   long: whether that took long; took: how long, in seconds
function _M.connect_failed(backend, index, long, took)
    if is_ignored(backend) then
        return
    end
    local state = state_of(backend, index)
    if not state or state.since then
        return
    end
    -- One of those tries that were made before the endpoint came back.
    if state.back and ngx_now() - took < state.back then
        return
    end
    state.took = long and took or nil
    if long then
        eject(state, "connect", "no connection after " .. took .. " s")
    elseif ngx_now() - state.probed >= SUSPECTED or ngx_now() < state.probed then
        probe.start(state)
    end
end


-- Notes how a try ended, for the rule of the backend. why: nil if it did not fail
local function ended(backend, index, why)
    if not why then
        local health = newest(backend).health
        local state = health and health.states[backend:endpoint(index)]
        if state then
            state.failures = 0
        end
        return
    end
    local state = state_of(backend, index)
    if not state or state.since then
        return
    end
    state.failures, state.changed = state.failures + 1, ngx_now()
    local rule = state.health.backend.rule
    if rule.failures and state.failures >= rule.failures then
        eject(state, "failures", why)
    end
end


-- Notes how the tries of a request ended: in the log phase, for backends whose rule needs it.
-- order: a list of indexes
function _M.report(backend, order)
    if is_ignored(backend) then
        return
    end
    local status, header = values(ngx_var.upstream_status), values(ngx_var.upstream_header_time)
    local statuses = backend.rule.statuses
    for i = 1, #order do
        local one, responded = status(), header()
        if one and one ~= LEFT and order[i] then
            local why
            if not responded then
                why = one == TIMED_OUT and "requests timed out" or "requests failed"
            elseif statuses and string_find(statuses, one, 1, true) then
                why = "responses had the status " .. one
            end
            ended(backend, order[i], why)
        end
    end
end


local function come_back(state, now)
    state.since, state.reason, state.due = nil, nil, nil
    state.back, state.changed = now, now
    log.err("namespace ", state.health.namespace, ": endpoint ", state.endpoint, " of backend ",
        state.health.backend.name, " is no longer ejected")
    refresh(state.health)
end


-- The outcome of a probe. err: nil if it connected
function _M.probed(state, err)
    local health = state.health
    if health.states[state.endpoint] ~= state then
        return
    end
    state.probed = ngx_now()
    if not err then
        if state.since then
            come_back(state, ngx_now())
        end
    elseif state.since then
        state.step = state.step + 1
        state.due = ngx_now() + probe.wait(state.step)
    else
        eject(state, "connect", "connect failed: " .. err)
    end
end


-- is_in_unit reports whether the backend's unit has the endpoint. The backend may have been
-- decoded again, because the cache was full, while requests still use the one of this state.
local function is_in_unit(state)
    local units = require "headgate.units"
    local backend = units.backend(state.health.backend.name, memory.revision())
    if not backend then
        return false
    end
    if backend.health then
        return backend.health == state.health
    end
    return index_of(backend, state.endpoint) ~= nil
end


-- check(state, now) does what is due, and forgets what is long ago.
local function check(state, now)
    if state.since then
        -- The clock may be set back.
        if state.probing or now < state.due and now >= state.since then
            return
        end
        -- Only what is in the unit now may be asked.
        if not is_in_unit(state) then
            forget(state)
            return refresh(state.health)
        end
        if state.health.states[state.endpoint] ~= state then
            return
        end
        if state.reason == "failures" then
            come_back(state, now)
        else
            probe.start(state)
        end
    elseif not state.probing and now - state.changed > probe.SOON then
        forget(state)
    end
end


-- Ends an ejection, since this worker ends.
local function stop(state)
    forget(state)
    refresh(state.health)
end


probe.init(check, _M.probed, stop)


-- list(limit) -> the endpoints that are ejected in this worker, those first that were first:
-- a list of { backend, endpoint, reason, since, until, avoided }
function _M.list(limit)
    local found = {}
    for state in pairs(probe.watched()) do
        if state.since then
            found[#found + 1] = state
        end
    end
    table_sort(found, function(a, b) return a.since < b.since end)
    local list = {}
    for i = 1, math_min(limit, #found) do
        local state = found[i]
        local backend = state.health.backend
        local avoid = backend.avoid
        list[i] = {
            backend = backend.name, endpoint = state.endpoint, reason = state.reason,
            since = math_floor(state.since), ["until"] = math_floor(state.due),
            avoided = avoid ~= nil and avoid[index_of(backend, state.endpoint)] == true,
        }
    end
    return list
end


return _M
