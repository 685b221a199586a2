-- Counters by reason and namespace, in memory that all workers share.
local _M = {}

local string_match = string.match

local control = ngx.shared.hg_control

local MAX_REFUSED = 100
local MAX_TIMED = 200
local MAX_RETRIED = 100

-- A kind of counters. Their keys are its name, a reason and a namespace, with colons. Only the first ones,
-- most at most, are counted by name, for all kinds with the same `named`: the key of how many there are.
-- All further ones count as OTHERS.
local REFUSALS = { name = "refusals", named = "refused", most = MAX_REFUSED }
local EJECTIONS = { name = "ejections", named = "refused", most = MAX_REFUSED }
local UNCOUNTED = { name = "uncounted", named = "refused", most = MAX_REFUSED }
local TIMES = { name = "times", named = "timed", most = MAX_TIMED }
local RETRIES = { name = "retries", named = "retried", most = MAX_RETRIED }
local KINDS = { refusals = true, ejections = true, uncounted = true, times = true, retries = true }
local OTHERS = "_others"

-- Before a reason, a colon and a namespace: the log has had a line about that within the last
-- minute.
local LOGGED = "logged:"
-- In seconds.
local MINUTE = 60


local function add(kind, reason, namespace, value)
    local prefix = kind.name .. ":" .. reason .. ":"
    local key = prefix .. namespace
    if not control:incr(key, value) then
        if control:incr(kind.named, 1, 0) > kind.most then
            key = prefix .. OTHERS
        end
        control:incr(key, value, 0)
    end
end


-- Reports whether the log may have a line about a namespace's time: one a minute for
-- each reason.
function _M.may_log(reason, namespace)
    return control:safe_add(LOGGED .. reason .. ":" .. namespace, true, MINUTE) == true
end


-- Counts a request that was refused because a namespace's time was up, or something else of it for which
-- a worker has no room. -> as may_log
function _M.refuse(reason, namespace)
    add(REFUSALS, reason, namespace, 1)
    return _M.may_log(reason, namespace)
end


-- Counts an endpoint that a worker ejected.
function _M.eject(reason, namespace)
    add(EJECTIONS, reason, namespace, 1)
end


-- Counts a request that a limit let pass without counting it. -> as may_log
function _M.pass_uncounted(reason, namespace)
    add(UNCOUNTED, reason, namespace, 1)
    return _M.may_log(reason, namespace)
end


-- Adds seconds that a worker took for a namespace.
function _M.add_time(reason, namespace, seconds)
    add(TIMES, reason, namespace, seconds)
end


-- Counts a retry of a request.
function _M.retry(namespace)
    add(RETRIES, "retry", namespace, 1)
end


-- read() -> by the name of a kind, by reason and by namespace: all counters, without kinds that
-- have none
function _M.read()
    local all = {}
    for _, key in ipairs(control:get_keys(0)) do
        local kind, reason, namespace = string_match(key, "^(%l+):(%l+):(.*)$")
        if KINDS[kind] then
            local of = all[kind] or {}
            all[kind] = of
            of[reason] = of[reason] or {}
            of[reason][namespace] = control:get(key)
        end
    end
    return all
end


return _M
