-- Reports what traffic.lua has counted: once a second, and when the worker ends.
--
-- A report is a value in a dictionary of its own, which the controller reads and then
-- deletes. Nothing is ever evicted from it: what finds no room stays with the worker, and
-- is reported later with what was counted since.
local cjson = require "cjson.safe"
local log = require "headgate.log"
local settings = require "headgate.settings"
local traffic = require "headgate.traffic"

local _M = {}

local math_min = math.min
local pairs = pairs

local dictionary = ngx.shared.hg_traffic

-- In seconds.
local INTERVAL = 1
-- How many series a report has, so that it finds room between others.
local SERIES = 100
-- How many reports the controller gets at once.
local REPORTS = 200
-- After how many reports, and with how many series, what was not used lately is forgotten.
local SWEEP, MANY = 60, 10000

local SEQUENCE = "sequence"

local reports = 0

-- NGINX's bits of methods.
local METHODS = {
    [0x2] = "GET", [0x4] = "HEAD", [0x8] = "POST", [0x10] = "PUT", [0x20] = "DELETE", [0x40] = "MKCOL",
    [0x80] = "COPY", [0x100] = "MOVE", [0x200] = "OPTIONS", [0x400] = "PROPFIND", [0x800] = "PROPPATCH",
    [0x1000] = "LOCK", [0x2000] = "UNLOCK", [0x4000] = "PATCH", [0x8000] = "TRACE", [0x10000] = "CONNECT",
}


-- cells(counts) -> those that are not 0: place, number, place, number, …
local function cells(counts)
    local list = {}
    for i = 0, traffic.CELLS - 1 do
        if counts[i] ~= 0 then
            list[#list + 1] = i
            list[#list + 1] = counts[i]
        end
    end
    return list
end


-- native(all) -> for each histogram: how many values are 0, and bucket, number, …
local function native(all)
    local lists = {}
    for h, buckets in ipairs(all) do
        local list = { buckets.zero or 0 }
        for key, count in pairs(buckets) do
            if key ~= "zero" then
                list[#list + 1] = key
                list[#list + 1] = count
            end
        end
        lists[h] = list
    end
    return lists
end


local function status_label(series)
    local group, status = series.group, series.status
    if settings.traffic.classes or group.ingress == traffic.OTHERS then
        return status >= 100 and string.format("%dxx", status / 100) or "0xx"
    end
    return string.format("%03d", status)
end


local function method_label(series)
    if series.group.ingress == traffic.OTHERS then
        return ""
    end
    return METHODS[series.method] or "UNKNOWN"
end


-- of_series(list, from, to) -> what is reported of them, by group
local function of_series(list, from, to)
    local reported, places = {}, {}
    for i = from, to do
        local series = list[i]
        local group = series.group
        local packed = places[group]
        if not packed then
            packed = {
                unit = group.unit, namespace = group.namespace, ingress = group.ingress, service = group.service,
                path = group.path, canary = group.canary, host = group.host, series = {},
            }
            places[group] = packed
            reported[#reported + 1] = packed
        end
        packed.series[#packed.series + 1] = {
            status = status_label(series), method = method_label(series), counts = cells(series.counts),
            native = series.native and native(series.native),
        }
    end
    return reported
end


-- add writes a report. -> whether there was room
local function add(groups, without_ingress)
    local number = dictionary:incr(SEQUENCE, 1)
    local value = cjson.encode({ groups = #groups > 0 and groups or nil, without_ingress = without_ingress })
    return number ~= nil and dictionary:safe_add("r" .. string.format("%d", number), value) == true
end


-- Reports all that was counted since the last time.
function _M.run()
    local list, without_ingress = traffic.take()
    local room = true
    for from = 1, #list, SERIES do
        local to = math_min(from + SERIES - 1, #list)
        room = room and add(of_series(list, from, to), 0)
        for i = from, to do
            if room then
                traffic.reported(list[i])
            else
                traffic.give_back(list[i])
            end
        end
    end
    if without_ingress > 0 and not (room and add({}, without_ingress)) then
        traffic.give_back_without_ingress(without_ingress)
    end
    reports = reports + 1
    traffic.sweep(reports % SWEEP == 0 and 0 or MANY)
end


-- Runs once in the master of each configuration.
function _M.init()
    -- Names of reports of an earlier NGINX are not used again.
    dictionary:safe_add(SEQUENCE, math.floor(ngx.now() * 1000))
end


-- Runs once in each worker. A worker that ends no longer has timers.
function _M.init_worker()
    local ok, err = ngx.timer.every(INTERVAL, function(premature)
        _M.run()
        if premature then
            traffic.leave(_M.run)
        end
    end)
    if not ok then
        log.err("count requests: ", err)
    end
end


-- exchange(seen) deletes reports, by their names in a text, and returns others as JSON.
function _M.exchange(seen)
    for name in string.gmatch(seen, "r%d+") do
        dictionary:delete(name)
    end
    local list = {}
    for _, name in ipairs(dictionary:get_keys(0)) do
        local value = name ~= SEQUENCE and #list < REPORTS and dictionary:get(name)
        if value then
            list[#list + 1] = '"' .. name .. '":' .. value
        end
    end
    return '{"reports":{' .. table.concat(list, ",") .. "}}"
end


return _M
