-- Health: what this worker knows about the endpoints of a backend that fail, and which of them
-- requests avoid.
--
-- Of a backend, only a share is avoided: those that cost requests a timeout, then those that
-- failed first. If all are failing, none is avoided.
--
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
local probe = require "headgate.probe"

local _M = {}

local ipairs = ipairs
local math_floor = math.floor
local math_max = math.max
local math_min = math.min
local ngx_now = ngx.now
local pairs = pairs
local string_match = string.match
local table_sort = table.sort

-- The rule of backends whose unit has none, in percent.
_M.DEFAULT = { share = 50 }

-- States in this worker; and how many of the free ones a namespace can have: one of SHARE.
local STATES = 1000
local SHARE = 4

local counts, all_count = {}, 0


-- newest(backend) -> the backend that replaced another one in this worker. All of a line share a table
-- with it: links from each to the next would keep them all in memory for a request that lasts.
function _M.newest(backend)
    backend = backend.base or backend
    return backend.line and backend.line.newest or backend
end


-- index_of(backend, endpoint) -> its index, nil if the backend does not have it
function _M.index_of(backend, endpoint)
    for i = 1, backend.count do
        if backend:endpoint(i) == endpoint then
            return i
        end
    end
    return nil
end


-- Forgets what is known of an endpoint. No request avoids it after the next refresh.
function _M.forget(state)
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


-- refresh(health) sets what requests of the backend avoid: failing, the set of all endpoints that
-- are ejected, and avoid, those of them that its share allows.
function _M.refresh(health)
    local backend = health.backend
    local order, failing = {}, {}
    for i = 1, backend.count do
        local state = health.states[backend:endpoint(i)]
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
        return comes_first(health.states[backend:endpoint(a)], health.states[backend:endpoint(b)])
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
    if rule then
        backend.rule = rule
    end
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
    for _, endpoint in ipairs(backend:endpoints()) do
        stays[endpoint] = not backend.rule.off and backend.count > 1
    end
    local gone = {}
    for endpoint, state in pairs(health.states) do
        if not stays[endpoint] or state.reason == "failures" and not backend.rule.failures then
            gone[#gone + 1] = state
        end
    end
    for _, state in ipairs(gone) do
        _M.forget(state)
    end
    _M.refresh(health)
end


local function new_health(backend)
    local health = { backend = backend, namespace = string_match(backend.name, "^[^/]*"), states = {} }
    backend.health = health
    return health
end


-- state_of(backend, index) -> the state of an endpoint; nil if there is no room for one, or
-- if the endpoint is gone.
function _M.state_of(backend, index)
    local endpoint = backend:endpoint(index)
    backend = _M.newest(backend)
    local health = backend.health or new_health(backend)
    if health.states[endpoint] then
        return health.states[endpoint]
    end
    local own = (counts[health.namespace] or 0) + 1
    if own > math_max(1, (STATES - all_count) / SHARE) or all_count >= STATES then
        return nil
    end
    index = _M.index_of(backend, endpoint)
    if not index then
        return nil
    end
    local state = {
        health = health, endpoint = endpoint, address = backend.addresses[index], port = backend.ports[index],
        step = 0, failures = 0, changed = ngx_now(), probed = 0,
    }
    health.states[endpoint] = state
    counts[health.namespace], all_count = own, all_count + 1
    probe.watch(state)
    return state
end


return _M
