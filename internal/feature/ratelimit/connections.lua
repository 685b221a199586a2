-- Requests in progress, as NGINX's limit_conn counts.
--
-- Beside the counter of a client, a counter of each worker says how much of it is that worker's:
-- when a worker dies, its successor takes that back.
local ffi = require "ffi"
local log = require "headgate.log"
local owners = require "headgate.feature.rate_limit.owners"

local _M = {}

local C = ffi.C
local ngx = ngx
local string_match = string.match
local tonumber = tonumber

local dictionary = ngx.shared.hg_connections

-- The list of the workers' pids.
local WORKERS = "workers"
-- Before a pid, a colon and a counter's key.
local OF_WORKER = "p"
-- In seconds: a worker that dies after a reload has no successor.
local INTERVAL = 10

local prefix

ffi.cdef [[
int kill(int pid, int sig);
]]


local function is_idle(_, count)
    return count <= 0
end


-- note counts for this worker. -> whether there was room
local function note(key)
    if dictionary:incr(prefix .. key, 1) then
        return true
    end
    return dictionary:safe_add(prefix .. key, 1) == true
end


-- unnote takes back what note counted. Only this worker writes these counters.
local function unnote(key)
    local left = dictionary:incr(prefix .. key, -1)
    if left and left <= 0 then
        dictionary:delete(prefix .. key)
    end
end


-- enter(key, limit, namespace) -> what leave needs, nil if the request is not counted; and
-- whether it is refused
function _M.enter(key, limit, namespace)
    local count = dictionary:incr(key, 1)
    if not count then
        if not owners.reserve(dictionary, "connections", namespace, key, is_idle) then
            return nil
        end
        count = dictionary:incr(key, 1, 0)
        if not count then
            return nil
        end
    end
    if count > limit then
        dictionary:incr(key, -1)
        return nil, true
    end
    if not note(key) then
        dictionary:incr(key, -1)
        owners.miss("connections", namespace)
        return nil
    end
    return key
end


-- leave(key): the end of a request that enter counted.
function _M.leave(key)
    dictionary:incr(key, -1)
    unnote(key)
end


-- clear takes back what workers that died have counted. pids: a set. It looks through all
-- counters, which other workers wait for: 0.1 s if the memory is full.
local function clear(pids)
    for _, key in ipairs(dictionary:get_keys(0)) do
        local pid, counter = string_match(key, "^" .. OF_WORKER .. "(%d+):(.*)$")
        if pid and pids[tonumber(pid)] then
            dictionary:incr(counter, -(dictionary:get(key) or 0))
            dictionary:delete(key)
        end
    end
end


-- sweep clears what workers that are no more have counted. former: a pid that one of them had.
local function sweep(former)
    local dead
    for _ = 1, dictionary:llen(WORKERS) or 0 do
        local pid = dictionary:rpop(WORKERS)
        if not pid then
            break
        end
        -- 0: no signal. All workers have the same user.
        if pid ~= former and C.kill(pid, 0) == 0 then
            dictionary:lpush(WORKERS, pid)
        else
            dead = dead or {}
            dead[pid] = true
        end
    end
    if dead then
        clear(dead)
    end
end


-- Runs once in each worker.
function _M.init_worker()
    prefix = OF_WORKER .. ngx.worker.pid() .. ":"
    sweep(ngx.worker.pid())
    dictionary:lpush(WORKERS, ngx.worker.pid())
    if ngx.worker.id() ~= 0 then
        return
    end
    local ok, err = ngx.timer.every(INTERVAL, function(premature)
        if not premature then
            sweep()
        end
    end)
    if not ok then
        log.err("look for workers that died: ", err)
    end
end


return _M
