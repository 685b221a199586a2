-- Probes: connections to endpoints that are failing, made by the worker itself, to learn
-- when they are back. No byte is sent. A probe that fails is made again, later each time.
local log = require "headgate.log"

local _M = {}

local math_min = math.min
local math_random = math.random
local next = next
local ngx_timer_at = ngx.timer.at
local pairs = pairs
local pcall = pcall
local tcp = ngx.socket.tcp

-- In seconds: how often is looked what is due; the wait before the first probe, which doubles
-- until it is the longest one; how much of it is random.
local TICK = 0.25
local FIRST_WAIT = 1
local LONGEST_WAIT = 30
local JITTER = 0.2
-- An endpoint that fails again within this time after it came back did so soon.
_M.SOON = 60
-- For a connection, unless requests have a shorter timeout.
local CONNECT_TIMEOUT = 5

-- Probes at a time in this worker; and how many of the free ones a namespace can have: one
-- of SHARE.
local PROBES = 256
local SHARE = 4

-- The states, see ejection.lua, that are looked at, and what looks at them.
local watched = {}
local ticking = false
local check, report, stop

local running, all_running = {}, 0


-- init sets what is done with the states: check(state, now) often, report(state, err) when a
-- probe has ended, stop(state) when the worker ends.
function _M.init(check_state, probed, stop_state)
    check, report, stop = check_state, probed, stop_state
end


-- wait(step) -> how long to wait before a probe, in seconds
function _M.wait(step)
    return math_min(LONGEST_WAIT, FIRST_WAIT * 2 ^ step) * (1 - JITTER * math_random())
end


-- drop ends an ejection that can't be checked. It would last forever otherwise.
local function drop(state)
    local ok, err = pcall(stop, state)
    if not ok then
        log.err("probe ", state.endpoint, ": ", err)
        _M.unwatch(state)
    end
end


local function tick(premature)
    ticking = false
    local act = premature and stop or check
    local now = ngx.now()
    -- A check may remove states, and the loading of a unit others.
    local states = {}
    for state in pairs(watched) do
        states[#states + 1] = state
    end
    for i = 1, #states do
        local state = states[i]
        if watched[state] then
            -- What fails for one endpoint must not end the probes of all others.
            local ok, err = pcall(act, state, now)
            if not ok then
                log.err("probe ", state.endpoint, ": ", err)
                drop(state)
            end
        end
    end
    if next(watched) then
        _M.tick_later()
    end
end


function _M.tick_later()
    if ticking then
        return
    end
    local ok, err = ngx_timer_at(TICK, tick)
    if not ok then
        log.err("wait for the next probe: ", err)
    end
    ticking = ok
end


function _M.watch(state)
    watched[state] = true
    _M.tick_later()
end


function _M.unwatch(state)
    watched[state] = nil
end


-- The set of the states that are watched.
function _M.watched()
    return watched
end


local function connect(state)
    local sock, err = tcp()
    if not sock then
        return nil, err
    end
    sock:settimeout(math_min(CONNECT_TIMEOUT, state.took or CONNECT_TIMEOUT) * 1000)
    local ok
    ok, err = sock:connect(state.address, state.port)
    sock:close()
    return ok, err
end


local function finish(state, namespace)
    state.probing = false
    local own = running[namespace] - 1
    running[namespace] = own > 0 and own or nil
    all_running = all_running - 1
end


local function run(premature, state, namespace)
    local ok, connected, err = true, false, "the worker ends"
    if not premature then
        ok, connected, err = pcall(connect, state)
    end
    finish(state, namespace)
    if premature or not watched[state] then
        return
    end
    if not ok then
        -- No reason to avoid the endpoint.
        log.err("probe ", state.endpoint, ": ", connected)
        connected = true
    end
    report(state, not connected and err or nil)
end


-- Probes an endpoint, if there is room.
function _M.start(state)
    local namespace = state.health.namespace
    local own = (running[namespace] or 0) + 1
    if state.probing or own > (PROBES - all_running) / SHARE then
        return
    end
    local ok, err = ngx_timer_at(0, run, state, namespace)
    if not ok then
        log.err("probe ", state.endpoint, ": ", err)
        return
    end
    state.probing = true
    running[namespace], all_running = own, all_running + 1
end


return _M
