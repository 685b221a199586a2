-- The budget of retries of a backend, in each worker: they are bounded to a share of its
-- requests, so that a backend that is down is not asked several times as often. Each request
-- brings in a part of a retry. Some more come in by time, so that a backend with few requests
-- is retried as if there were no limit.
--
-- NGINX must know before a try fails whether there is another one. One more is granted at a
-- time, therefore, at the first try and at each retry, and paid when it is made. A retry is
-- free that the backend does not notice: no connection was made to the endpoint before, and
-- the next one is not known to fail.
local counters = require "headgate.counters"
local log = require "headgate.log"

local _M = {}

local math_max = math.max
local math_min = math.min
local ngx_now = ngx.now
local string_match = string.match

-- The share of backends whose unit has none, in percent; 100 for no limit.
_M.DEFAULT_SHARE = 20
local NO_LIMIT = 100

-- What comes in by time, a second, and what is saved at most, for all workers together.
local RATE = 10
local SAVED = 100
-- At least, for each worker.
local MIN_SAVED = 10
-- In each worker: requests in progress were granted their retry before others failed.
local MAX_OWED = 500

local rate, saved


-- begin sets what depends on the number of workers.
local function begin()
    local workers = ngx.worker.count()
    rate, saved = RATE / workers, math_max(MIN_SAVED, SAVED / workers)
end


-- A backend has a budget once a retry was paid, until it is full again:
--   backend.retries = { left, at, income }
function _M.adopt(backend, share, before)
    if share then
        backend.retry_share = share
    end
    local budget = before and before.retries
    if budget and backend.retry_share < NO_LIMIT then
        budget.income = backend.retry_share / 100
        backend.retries = budget
    end
end


-- may_rescue reports whether a retry is granted though the budget is empty: the endpoint is
-- known to fail, and there are others that are not.
local function may_rescue(backend, index)
    local failing = backend.failing
    if not failing or not failing[index] then
        return false
    end
    for i = 1, backend.count do
        if not failing[i] then
            return true
        end
    end
    return false
end


local function earn(budget, income)
    local now = ngx_now()
    -- The clock may be set back.
    local more = now > budget.at and (now - budget.at) * rate or 0
    budget.left, budget.at = math_min(saved, budget.left + income + more), now
    return budget.left
end


-- begins(backend, index) counts a request. -> whether it may be retried
-- To be called if the backend has a budget.
function _M.begins(backend, index)
    backend = backend.base or backend
    local budget = backend.retries
    local left = earn(budget, budget.income)
    if left >= saved then
        backend.retries = nil
    end
    if left >= 1 or may_rescue(backend, index) then
        return true
    end
    local namespace = string_match(backend.name, "^[^/]*")
    if counters.refuse("retry", namespace) then
        log.err("namespace ", namespace, ": too many requests fail: not all are retried, for example to backend ",
            backend.name)
    end
    return false
end


-- goes_on(backend, index, stays) -> whether a request that is retried may be so once more
--   stays: whether its picker did not leave the endpoints that it had tried
function _M.goes_on(backend, index, stays)
    local budget = backend.retries
    return not budget or earn(budget, 0) >= 1 or not stays and may_rescue(backend, index)
end


-- Pays for a retry.
function _M.pay(backend)
    backend = backend.base or backend
    counters.retry(string_match(backend.name, "^[^/]*"))
    if backend.retry_share >= NO_LIMIT then
        return
    end
    if not rate then
        begin()
    end
    local budget = backend.retries
    if not budget then
        budget = { left = saved, at = ngx_now(), income = backend.retry_share / 100 }
        backend.retries = budget
    end
    budget.left = math_max(-MAX_OWED, budget.left - 1)
end


return _M
