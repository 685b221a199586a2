-- Reports what traffic.lua has counted: once a second, and when the worker ends.
--
-- A report that finds no room stays with the worker, and is reported later with what was
-- counted since. Its form, which internal/observe/traffic/report.go reads, takes a hundredth of the time
-- that JSON would take.
local cjson = require "cjson.safe"
local ffi = require "ffi"
local histograms = require "headgate.traffic_histogram"
local reports = require "headgate.reports"
local series_of = require "headgate.traffic_series"
local totals = require "headgate.traffic_totals"
local traffic = require "headgate.traffic"

local _M = {}

local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_new = ffi.new
local ffi_string = ffi.string
local math_max = math.max
local math_min = math.min
local pairs = pairs

ffi.cdef [[
struct hg_traffic_report { double without_ingress, worker; };
struct hg_traffic_series { uint32_t labels, cells, natives, traces, status, method; } __attribute__((packed));
struct hg_traffic_cell { uint16_t number; double count; } __attribute__((packed));
struct hg_traffic_native { uint16_t histogram; int32_t bucket; double count; } __attribute__((packed));
struct hg_traffic_trace { uint16_t number; double value, time; char id[32]; } __attribute__((packed));
]]

local dictionary = ngx.shared.hg_traffic

-- How many series a report has, so that it finds room between others.
local SERIES = 100
-- How many reports the controller gets at once.
local REPORTS = 200
-- After how many reports, and with how many series, what was not used lately is forgotten.
local SWEEP, MANY = 60, 10000
-- Stands for the bucket of what is 0.
local ZERO = -2147483648

local CELLS, numbers = histograms.CELLS, histograms.numbers

local REPORT = ffi.sizeof("struct hg_traffic_report")
local HEAD, CELL = ffi.sizeof("struct hg_traffic_series"), ffi.sizeof("struct hg_traffic_cell")
local NATIVE, TRACE = ffi.sizeof("struct hg_traffic_native"), ffi.sizeof("struct hg_traffic_trace")
local head_type, cell_type = ffi.typeof("struct hg_traffic_series *"), ffi.typeof("struct hg_traffic_cell *")
local native_type, trace_type = ffi.typeof("struct hg_traffic_native *"), ffi.typeof("struct hg_traffic_trace *")

-- Where a report is written.
local size = 65536
local buffer = ffi_new("uint8_t[?]", size)

-- How often this worker has reported.
local runs = 0
-- The number of this worker.
local worker = 0


-- labels_of(group) -> its labels as JSON
local function labels_of(group)
    local labels = group.labels
    if not labels then
        labels = cjson.encode({
            unit = group.unit, namespace = group.namespace, ingress = group.ingress, service = group.service,
            path = group.path, canary = group.canary, host = group.host,
        })
        group.labels = labels
    end
    return labels
end


-- Makes room for more bytes behind those that are used.
local function reserve(used, more)
    if used + more > size then
        size = math_max(2 * size, used + more)
        local larger = ffi_new("uint8_t[?]", size)
        ffi_copy(larger, buffer, used)
        buffer = larger
    end
end


-- pack_cells(counts, at) -> how many counts that are not 0 it has written
local function pack_cells(counts, at)
    local cells, count = ffi_cast(cell_type, buffer + at), 0
    for i = 0, CELLS - 1 do
        local value = counts[i]
        if value ~= 0 then
            cells[count].number, cells[count].count = numbers[i], value
            count = count + 1
        end
    end
    return count
end


-- pack_natives(all, at) -> how many buckets of native histograms it has written
local function pack_natives(all, at)
    local count = 0
    for h, buckets in ipairs(all) do
        for key, value in pairs(buckets) do
            reserve(at, NATIVE)
            local one = ffi_cast(native_type, buffer + at)
            one.histogram, one.bucket, one.count = h - 1, key == "zero" and ZERO or key, value
            at, count = at + NATIVE, count + 1
        end
    end
    return count
end


-- pack_traces(all, at) -> how many examples it has written
local function pack_traces(all, at)
    local count = 0
    for place, trace in pairs(all) do
        reserve(at, TRACE)
        local one = ffi_cast(trace_type, buffer + at)
        one.number, one.value, one.time = numbers[place], trace.value, trace.time
        ffi_copy(one.id, trace.id, 32)
        at, count = at + TRACE, count + 1
    end
    return count
end


-- pack writes a series. -> where the next one begins
local function pack(series, at)
    local labels = labels_of(series.group)
    reserve(at, HEAD + CELLS * CELL)
    local cells = pack_cells(series.counts, at + HEAD)
    local next_at = at + HEAD + cells * CELL
    local natives = series.native and pack_natives(series.native, next_at) or 0
    next_at = next_at + natives * NATIVE
    local traces = series.traces and pack_traces(series.traces, next_at) or 0
    next_at = next_at + traces * TRACE
    reserve(next_at, #labels)
    ffi_copy(buffer + next_at, labels, #labels)
    local head = ffi_cast(head_type, buffer + at)
    head.labels, head.cells, head.natives, head.traces = #labels, cells, natives, traces
    head.status, head.method = series.status, series.method
    return next_at + #labels
end


-- add(used, without_ingress) -> whether there was room for what was written
local function add(used, without_ingress)
    local head = ffi_cast("struct hg_traffic_report *", buffer)
    head.without_ingress, head.worker = without_ingress, worker
    return reports.add(dictionary, ffi_string(buffer, used))
end


-- report(list, from, to) -> whether there was room for a report of these series
local function report(list, from, to)
    local at = REPORT
    for i = from, to do
        at = pack(list[i], at)
    end
    return add(at, 0)
end


-- Reports all that was counted since the last time.
function _M.run()
    local list, without_ingress = series_of.take(), traffic.take_without_ingress()
    local room = true
    for from = 1, #list, SERIES do
        local to = math_min(from + SERIES - 1, #list)
        room = room and report(list, from, to)
        for i = from, to do
            if room then
                series_of.reported(list[i])
            else
                series_of.give_back(list[i])
            end
        end
    end
    if without_ingress > 0 and not (room and add(REPORT, without_ingress)) then
        traffic.give_back_without_ingress(without_ingress)
    end
    runs = runs + 1
    series_of.sweep(runs % SWEEP == 0 and 0 or MANY)
end


-- Runs once in the master of each configuration.
function _M.init()
    reports.init(dictionary)
    totals.init()
end


-- Runs once in each worker. A worker that ends no longer has timers.
function _M.init_worker()
    worker = reports.number(dictionary) or 0
    traffic.count_in(totals.claim(worker))
    reports.every_second("count requests", function(premature)
        _M.run()
        if premature then
            traffic.leave(_M.run)
        end
    end)
end


-- exchange(seen) deletes reports, by their names in a text, and returns others as JSON.
function _M.exchange(seen)
    for name in string.gmatch(seen, "%S+") do
        if not reports.delete(dictionary, name) then
            totals.forget(name)
        end
    end
    -- Before reports are read: what a worker reported last must be among them.
    local ended = totals.ended(dictionary:get_keys(0))
    local taken, complete = reports.take(dictionary, REPORTS)
    if complete then
        for name, value in pairs(ended) do
            taken[name] = value
        end
    end
    return reports.encode(taken)
end


return _M
