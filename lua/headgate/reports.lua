-- Reports of workers to the controller: values in a dictionary, which the controller reads and
-- then deletes. A report is returned until it is deleted.
--
-- Nothing is ever evicted from the dictionary: what finds no room stays with the worker. It may
-- have other keys, but none that begins with "r" and a digit.
local log = require "headgate.log"

local _M = {}

local ipairs = ipairs
local ngx_encode_base64 = ngx.encode_base64
local pairs = pairs
local string_find = string.find
local string_format = string.format
local table_concat = table.concat

-- In seconds.
local INTERVAL = 1

local SEQUENCE = "sequence"


-- Runs once in the master of each configuration.
function _M.init(dictionary)
    -- Names of reports of an earlier NGINX are not used again.
    dictionary:safe_add(SEQUENCE, math.floor(ngx.now() * 1000))
end


-- number(dictionary) -> a number that nothing else has, nil if there is none
function _M.number(dictionary)
    return (dictionary:incr(SEQUENCE, 1))
end


-- add(dictionary, value) -> whether there was room for a report
function _M.add(dictionary, value)
    local number = dictionary:incr(SEQUENCE, 1)
    return number ~= nil and dictionary:safe_add("r" .. string_format("%d", number), value) == true
end


local function is_report(name)
    return string_find(name, "^r%d") ~= nil
end


-- delete(dictionary, name) -> whether this can be the name of a report
function _M.delete(dictionary, name)
    if not is_report(name) then
        return false
    end
    dictionary:delete(name)
    return true
end


-- take(dictionary, most) -> reports by name, at most so many; whether these are all
function _M.take(dictionary, most)
    local taken, count = {}, 0
    for _, name in ipairs(dictionary:get_keys(0)) do
        local value = is_report(name) and dictionary:get(name)
        if value and count == most then
            return taken, false
        end
        if value then
            taken[name], count = value, count + 1
        end
    end
    return taken, true
end


-- encode(taken) -> reports by name as the response to the controller
function _M.encode(taken)
    local list = {}
    for name, value in pairs(taken) do
        list[#list + 1] = '"' .. name .. '":"' .. ngx_encode_base64(value) .. '"'
    end
    return '{"reports":{' .. table_concat(list, ",") .. "}}"
end


-- every_second has run(premature) called once a second, and with true when the worker ends. What
-- it does is what the log says if that can't be.
function _M.every_second(what, run)
    local ok, err = ngx.timer.every(INTERVAL, run)
    if not ok then
        log.err(what, ": ", err)
    end
end


return _M
