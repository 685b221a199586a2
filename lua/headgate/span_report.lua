-- Hands finished spans to the controller: when some have come together, once a second, and
-- when the worker ends.
--
-- A report is JSON in a dictionary of its own, which the controller reads and then deletes.
-- Nothing is ever evicted from it: what finds no room stays with the worker, and what is too
-- much for that is dropped, and counted in the next report. No request waits for a span.
local log = require "headgate.log"

local _M = {}

local math_min = math.min
local ngx_encode_base64 = ngx.encode_base64
local string_format = string.format
local table_concat = table.concat

local dictionary = ngx.shared.hg_spans

-- In seconds.
local INTERVAL = 1
-- How many spans a report has, so that it finds room between others.
local SPANS = 50
-- How many reports the controller gets at once.
local REPORTS = 100

local SEQUENCE = "sequence"

-- The spans that were not reported yet, in this order, and how many were dropped since the
-- last report.
local list, count, dropped = {}, 0, 0
-- How many may wait.
local limit = 0
-- How many are reported at once. A worker that ends has no timers any more.
local batch = SPANS
-- Whether the last report found no room. The timer tries again.
local full = false


-- Bounds how many spans may wait. 0: there are to be no further ones.
function _M.set_limit(most)
    limit = most
end


-- report writes spans. -> whether there was room
local function report(from, to)
    local name = dictionary:incr(SEQUENCE, 1)
    return name and dictionary:safe_add("r" .. string_format("%d", name),
        '{"dropped":' .. dropped .. ',"spans":[' .. table_concat(list, ",", from, to) .. "]}") == true
end


-- Reports all spans that there are, as far as there is room.
function _M.run()
    local from = 1
    full = false
    while not full and (from <= count or dropped > 0) do
        local to = math_min(from + SPANS - 1, count)
        if report(from, to) then
            from, dropped = to + 1, 0
        else
            full = true
        end
    end
    local rest = {}
    for i = from, count do
        rest[i - from + 1] = list[i]
    end
    list, count = rest, count - from + 1
end


-- Takes a span, as JSON.
function _M.add(span)
    if count >= limit then
        dropped = dropped + 1
        return
    end
    count = count + 1
    list[count] = span
    if (count >= batch or count >= limit) and not full then
        _M.run()
    end
end


-- Runs once in the master of each configuration.
function _M.init()
    -- Names of reports of an earlier NGINX are not used again.
    dictionary:safe_add(SEQUENCE, math.floor(ngx.now() * 1000))
end


-- Runs once in each worker. A worker that ends no longer has timers.
function _M.init_worker()
    local ok, err = ngx.timer.every(INTERVAL, function(premature)
        if premature then
            batch = 1
        end
        _M.run()
    end)
    if not ok then
        log.err("report spans: ", err)
    end
end


-- exchange(seen) deletes reports, by their names in a text, and returns others as JSON.
function _M.exchange(seen)
    for name in string.gmatch(seen, "r%d+") do
        dictionary:delete(name)
    end
    local texts = {}
    for _, name in ipairs(dictionary:get_keys(0)) do
        local value = name ~= SEQUENCE and #texts < REPORTS and dictionary:get(name)
        if value then
            texts[#texts + 1] = '"' .. name .. '":"' .. ngx_encode_base64(value) .. '"'
        end
    end
    return '{"reports":{' .. table_concat(texts, ",") .. "}}"
end


return _M
