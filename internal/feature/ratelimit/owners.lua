-- The memory of counters: which namespace has how many.
--
-- A dictionary has counters by their keys and, for each namespace, a list of the keys that it
-- has. For each new counter the two oldest ones are looked at, and removed if they are idle: a
-- namespace has few more than it uses. Nothing is ever evicted. Without room, no counter is made.
local counters = require "headgate.counters"
local log = require "headgate.log"

local _M = {}

-- Counters of a namespace in each dictionary. One takes 192 bytes with the address of a client,
-- and up to 384 with another key: ten namespaces, or five, fill that of requests.
local COUNTERS = 32768
-- Memory that is left, in bytes: a counter takes no whole page.
local RESERVE = 1024 * 1024
-- How many old counters are looked at for each new one.
local LOOKS = 2
-- Before a namespace. Keys of counters begin with a letter or digit, or +, / or a pid.
local LIST = "="


-- sweep removes idle ones of the oldest counters of a list.
local function sweep(dictionary, list, is_idle)
    for _ = 1, LOOKS do
        local key = dictionary:rpop(list)
        if not key then
            return
        end
        local value = dictionary:get(key)
        if value and is_idle(key, value) then
            dictionary:delete(key)
        elseif value then
            dictionary:lpush(list, key)
        end
    end
end


-- reserve(dictionary, reason, namespace, key, is_idle) -> whether there is room for a counter.
-- The caller makes it then. is_idle(key, value): whether a counter may be removed.
function _M.reserve(dictionary, reason, namespace, key, is_idle)
    local list = LIST .. namespace
    sweep(dictionary, list, is_idle)
    local count = dictionary:llen(list)
    if count and count < COUNTERS and dictionary:free_space() > RESERVE and dictionary:lpush(list, key) then
        return true
    end
    _M.miss(reason, namespace)
    return false
end


-- Counts a request that is not counted.
function _M.miss(reason, namespace)
    if counters.pass_uncounted(reason, namespace) then
        log.err("namespace ", namespace, ": no room for a further counter of ", reason,
            ": clients without one are not limited")
    end
end


return _M
