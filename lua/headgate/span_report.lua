-- Hands finished spans to the controller: when some have come together, once a second, and
-- when the worker ends.
--
-- A report is JSON. What finds no room stays with the worker, and what is too much for that is
-- dropped, and counted in the next report. No request waits for a span.
local reports = require "headgate.reports"

local _M = {}

local math_min = math.min
local table_concat = table.concat

local dictionary = ngx.shared.hg_spans

-- How many spans a report has, so that it finds room between others.
local SPANS = 50
-- How many reports the controller gets at once.
local REPORTS = 100

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
    return reports.add(dictionary,
        '{"dropped":' .. dropped .. ',"spans":[' .. table_concat(list, ",", from, to) .. "]}")
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
    reports.init(dictionary)
end


-- Runs once in each worker. A worker that ends no longer has timers.
function _M.init_worker()
    reports.every_second("report spans", function(premature)
        if premature then
            batch = 1
        end
        _M.run()
    end)
end


-- exchange(seen) deletes reports, by their names in a text, and returns others as JSON.
function _M.exchange(seen)
    for name in string.gmatch(seen, "%S+") do
        reports.delete(dictionary, name)
    end
    return reports.encode((reports.take(dictionary, REPORTS)))
end


return _M
