-- Requests in a window of time, over all replicas of Headgate.
--
-- A counter is of one client in one window, and holds two numbers: the requests that this
-- replica let pass, and those of the others, which the controller brings (exchange.lua). They are
-- two parts of one number, so that workers and the controller change either without a lock. The
-- window slides: of the one before counts the part that is not yet a window ago, as if its
-- requests had come evenly.
local owners = require "headgate.feature.rate_limit.owners"

local _M = {}

local ngx_now = ngx.now
local math_floor = math.floor
local math_min = math.min
local string_match = string.match
local string_sub = string.sub
local tonumber = tonumber

local dictionary = ngx.shared.hg_windows

-- Where the requests of other replicas begin in a counter. Limits are lower.
local OTHERS = 2 ^ 26
-- Length of the ID of an Ingress, with which keys begin.
local ID = 12
-- The counters that have changed since the controller asked, and before a key, that it is among
-- them. Keys of counters begin with a letter or digit, or + or /.
local CHANGED = "?"


-- parts(key) -> the length of the window in seconds, and its number since 1970
local function parts(key)
    local seconds, number = string_match(key, "^(%d+):(%d+):", ID + 1)
    return tonumber(seconds), tonumber(number)
end


-- is_over reports whether the window after a counter's is over, too.
local function is_over(key)
    local seconds, number = parts(key)
    return not seconds or (number + 2) * seconds <= ngx_now()
end


local function sum(value)
    local others = math_floor(value / OTHERS)
    return value - others * OTHERS + others
end


-- counter(key, namespace) -> its value, nil if there is no room for it
local function counter(key, namespace)
    local value = dictionary:get(key)
    if value then
        return value
    end
    if not owners.reserve(dictionary, "replicas", namespace, key, is_over) then
        return nil
    end
    dictionary:safe_add(key, 0)
    return dictionary:get(key)
end


-- note has the controller ask for a counter.
local function note(key)
    local flag = CHANGED .. key
    if dictionary:safe_add(flag, true) and not dictionary:lpush(CHANGED, key) then
        dictionary:delete(flag)
    end
end


-- take(policy, client, namespace) -> whether a client may send one more request. Those that are
-- refused don't count.
function _M.take(policy, client, namespace)
    local window = policy.window
    local seconds, now = window.seconds, ngx_now()
    local number = math_floor(now / seconds)
    local prefix = policy.id .. seconds .. ":"
    local key = prefix .. number .. ":" .. client
    local before_key = prefix .. number - 1 .. ":" .. client
    local value = counter(key, namespace)
    local before = counter(before_key, namespace)
    if not value or not before then
        return true
    end
    local room = window.limit - sum(before) * (1 - (now / seconds - number))
    if sum(value) + 1 > room then
        return false
    end
    value = dictionary:incr(key, 1)
    if value and sum(value) > room then
        -- Another worker was faster.
        dictionary:incr(key, -1)
        return false
    end
    note(key)
    return true
end


-- changed(most) -> a list of { key, before, seconds, own } of counters that have changed:
-- before is the key of the client's counter in the window before, and own the number of requests
-- of this replica. Each change is in one list, and what is over in none.
function _M.changed(most)
    local list = {}
    while #list < most do
        local key = dictionary:rpop(CHANGED)
        if not key then
            return list
        end
        -- First, so that later requests note it again.
        dictionary:delete(CHANGED .. key)
        local value = dictionary:get(key)
        if value and not is_over(key) then
            local seconds, number = parts(key)
            local rest = string_sub(key, ID + #(seconds .. ":" .. number) + 1)
            list[#list + 1] = {
                key = key, before = string_sub(key, 1, ID) .. seconds .. ":" .. number - 1 .. rest,
                seconds = seconds, own = value % OTHERS,
            }
        end
    end
    return list
end


-- learn(key, others): how many requests other replicas let pass. It never gets less: if the store
-- has lost it, it is known here.
function _M.learn(key, others)
    local value = dictionary:get(key)
    local more = value and math_min(others, OTHERS - 1) - math_floor(value / OTHERS)
    if more and more > 0 then
        dictionary:incr(key, more * OTHERS)
    end
end


return _M
