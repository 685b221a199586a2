-- Hands sampled requests to the controller, which makes their spans: when some have come together,
-- once a second, and when the worker ends.
--
-- A report is JSON. What finds no room stays with the worker, and what is too much for that is
-- dropped, and counted in the next report. No request waits for a span.
local reports = require "headgate.reports"

local _M = {}

local math_min = math.min
local table_concat = table.concat

local dictionary = ngx.shared.hg_spans

-- How many requests a report has, so that it finds room between others.
local REQUESTS = 25
-- How many reports the controller gets at once.
local REPORTS = 100

-- The most bytes of what waits in a worker: clients can send long texts.
local BYTES = 16 * 1024 * 1024

-- The requests that were not reported yet, as JSON in this order, their number and size, and how many
-- spans each and all of them have.
local list, count, bytes, sizes, waiting = {}, 0, 0, {}, 0
-- How many spans were dropped since the last report.
local dropped = 0
-- How many spans may wait.
local limit = 0
-- How many requests are reported at once. A worker that ends has no timers any more.
local batch = REQUESTS
-- Whether the last report found no room. The timer tries again.
local full = false


-- Bounds how many spans may wait. 0: there are to be no further ones.
function _M.set_limit(most)
    limit = most
end


-- report writes requests. -> whether there was room
local function report(from, to)
    return reports.add(dictionary,
        '{"dropped":' .. dropped .. ',"requests":[' .. table_concat(list, ",", from, to) .. "]}")
end


-- drop_first forgets so many requests, which were reported.
local function drop_first(number)
    local rest, rest_sizes = {}, {}
    waiting, bytes = 0, 0
    for i = number + 1, count do
        rest[i - number], rest_sizes[i - number] = list[i], sizes[i]
        waiting, bytes = waiting + sizes[i], bytes + #list[i]
    end
    list, sizes, count = rest, rest_sizes, count - number
end


-- Reports all requests that there are, as far as there is room.
function _M.run()
    local from = 1
    full = false
    while not full and (from <= count or dropped > 0) do
        local to = math_min(from + REQUESTS - 1, count)
        if report(from, to) then
            from, dropped = to + 1, 0
        else
            full = true
        end
    end
    drop_first(from - 1)
end


-- Takes a request, as JSON, with its number of spans.
function _M.add(request, spans)
    if waiting >= limit or not request or bytes + #request > BYTES then
        dropped = dropped + spans
        return
    end
    count, bytes, waiting = count + 1, bytes + #request, waiting + spans
    list[count], sizes[count] = request, spans
    if (count >= batch or waiting >= limit) and not full then
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
