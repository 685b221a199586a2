-- Ejection: what this worker knows about endpoints that fail, and which ones requests
-- avoid therefore.
--
-- A try that fails is known when NGINX asks for the next endpoint: requests that succeed
-- pay nothing. An endpoint to which no connection can be made is ejected until a probe of the
-- worker's own connects to it (probe.lua): at once if a request waited long for that, else when
-- a probe has failed as well, since a kept connection that the backend has just closed, a
-- failed TLS handshake and a lack of local ports look the same. By a rule (ejection:
-- failures), an endpoint is also ejected for a time, after failures in a row.
--
-- Of a backend, only a share is avoided: those that cost requests a timeout, then those that
-- failed first. If all are failing, none is avoided.
local failure = require "headgate.failure"
local log = require "headgate.log"
local memory = require "headgate.memory"
local probe = require "headgate.probe"

local _M = {}

local ipairs = ipairs
local pairs = pairs
local math_floor = math.floor
local math_max = math.max
local math_min = math.min
local ngx_now = ngx.now
local ngx_var = ngx.var
local string_find = string.find
local string_match = string.match
local table_sort = table.sort
local values = failure.values
local worker_exiting = ngx.worker.exiting

-- The rule of backends whose unit has none, in percent.
local DEFAULT = { share = 50 }

-- NGINX's status for a try that took too long.
local TIMED_OUT = 504

-- How many times the time of the first ejection by failures the longest one is.
local LONGEST = 10

-- In seconds: how long an endpoint is not suspected again when a probe has connected to it.
local SUSPECTED = 1

-- NGINX's status for a client that has left.
local LEFT = 499

-- States in this worker; and how many of the free ones a namespace can have: one of SHARE.
local STATES = 1000
local SHARE = 4

local counts, all_count = {}, 0


-- A health, which a backend has once an endpoint has failed, is
--   backend    the newest one with that name
--   namespace
--   states     by endpoint, "address:port"
-- and a state
--   health, endpoint, address, port
--   since      when it was ejected, nil while it is not
--   reason     "connect" or "failures"
--   due        when it is probed, or is back
--   step       the number of waits that have grown so far, of a row of ejections
--   back       when it came back from the last ejection
--   took       how long a request waited in vain for a connection, if it was long
--   probing    whether a probe is on its way; probed: when the last one ended
--   failures   of the rule, in a row
--   changed    when it failed, or came back, last


-- newest is the backend that replaced another one in this worker. All of a line share a table
-- with it: links from each to the next would keep them all in memory for a request that lasts.
local function newest(backend)
    backend = backend.base or backend
    return backend.line and backend.line.newest or backend
end


local function forget(state)
    local health = state.health
    if health.states[state.endpoint] ~= state then
        return
    end
    health.states[state.endpoint] = nil
    probe.unwatch(state)
    local own = counts[health.namespace] - 1
    counts[health.namespace] = own > 0 and own or nil
    all_count = all_count - 1
end


-- comes_first reports whether one state is rather avoided than another.
local function comes_first(one, other)
    local cost, other_cost = one.took or 0, other.took or 0
    if cost ~= other_cost then
        return cost > other_cost
    end
    return one.since < other.since or one.since == other.since and one.endpoint < other.endpoint
end


-- refresh sets what requests of the backend avoid: failing, the set of all endpoints that
-- are ejected, and avoid, those of them that its share allows.
local function refresh(health)
    local backend = health.backend
    local order, failing = {}, {}
    for i = 1, backend.count do
        local state = health.states[backend.endpoints[i]]
        if state and state.since then
            order[#order + 1] = i
            failing[i] = true
        end
    end
    backend.failing = #order > 0 and failing or nil
    backend.avoid = nil
    if #order == 0 or #order == backend.count then
        return
    end
    table_sort(order, function(a, b)
        return comes_first(health.states[backend.endpoints[a]], health.states[backend.endpoints[b]])
    end)
    local most = math_max(1, math_floor(backend.count * backend.rule.share / 100))
    local avoid = {}
    for i = 1, math_min(most, #order) do
        avoid[order[i]] = true
    end
    backend.avoid = avoid
end


-- adopt(backend, rule, before) gives a new backend its rule, and what this worker knows of
-- the endpoints that stay.
--   rule: { off, share, failures, statuses, time }, nil for the default
--   before: the backend of that name that this worker had, nil if none
function _M.adopt(backend, rule, before)
    backend.rule = rule or DEFAULT
    if not before then
        return
    end
    before.line = before.line or {}
    before.line.newest = backend
    backend.line = before.line
    local health = before.health
    if not health then
        return
    end
    backend.health, health.backend = health, backend
    local stays = {}
    for _, endpoint in ipairs(backend.endpoints) do
        stays[endpoint] = not backend.rule.off and backend.count > 1
    end
    local gone = {}
    for endpoint, state in pairs(health.states) do
        if not stays[endpoint] or state.reason == "failures" and not backend.rule.failures then
            gone[#gone + 1] = state
        end
    end
    for _, state in ipairs(gone) do
        forget(state)
    end
    refresh(health)
end


local function new_health(backend)
    local health = { backend = backend, namespace = string_match(backend.name, "^[^/]*"), states = {} }
    backend.health = health
    return health
end


-- state_of(backend, index) -> the state of an endpoint; nil if there is no room for one, or
-- if the endpoint is gone.
local function state_of(backend, index)
    local endpoint = backend.endpoints[index]
    backend = newest(backend)
    local health = backend.health or new_health(backend)
    if health.states[endpoint] then
        return health.states[endpoint]
    end
    local own = (counts[health.namespace] or 0) + 1
    if own > math_max(1, (STATES - all_count) / SHARE) or all_count >= STATES then
        return nil
    end
    for i = 1, backend.count do
        if backend.endpoints[i] == endpoint then
            local state = {
                health = health, endpoint = endpoint, address = backend.addresses[i], port = backend.ports[i],
                step = 0, failures = 0, changed = ngx_now(), probed = 0,
            }
            health.states[endpoint] = state
            counts[health.namespace], all_count = own, all_count + 1
            probe.watch(state)
            return state
        end
    end
    return nil
end


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
    memory.count_ejection(reason, health.namespace)
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
        local state = health and health.states[backend.endpoints[index]]
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
    if not backend or backend.health == state.health then
        return backend ~= nil and backend ~= false
    end
    if backend.health then
        return false
    end
    for i = 1, backend.count do
        if backend.endpoints[i] == state.endpoint then
            return true
        end
    end
    return false
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
        local avoided = false
        for j in pairs(backend.avoid or {}) do
            avoided = avoided or backend.endpoints[j] == state.endpoint
        end
        list[i] = {
            backend = backend.name, endpoint = state.endpoint, reason = state.reason,
            since = math_floor(state.since), ["until"] = math_floor(state.due), avoided = avoided,
        }
    end
    return list
end


return _M
