-- Reports what traffic.lua has counted: once a second, and when the worker ends.
--
-- A report is a value in a dictionary of its own, which the controller reads and then
-- deletes. Nothing is ever evicted from it: what finds no room stays with the worker, and
-- is reported later with what was counted since. Its form, which internal/traffic/report.go
-- reads, takes a hundredth of the time that JSON would take.
local cjson = require "cjson.safe"
local ffi = require "ffi"
local log = require "headgate.log"
local traffic = require "headgate.traffic"

local _M = {}

local ffi_cast = ffi.cast
local ffi_new = ffi.new
local ffi_string = ffi.string
local math_min = math.min
local pairs = pairs
local table_concat = table.concat

ffi.cdef [[
struct hg_traffic_series { uint32_t labels, cells, natives, status, method; } __attribute__((packed));
struct hg_traffic_cell { uint16_t place; double count; } __attribute__((packed));
struct hg_traffic_native { uint16_t histogram; int32_t bucket; double count; } __attribute__((packed));
]]

local dictionary = ngx.shared.hg_traffic

-- In seconds.
local INTERVAL = 1
-- How many series a report has, so that it finds room between others.
local SERIES = 100
-- How many reports the controller gets at once.
local REPORTS = 200
-- After how many reports, and with how many series, what was not used lately is forgotten.
local SWEEP, MANY = 60, 10000
-- Stands for the bucket of what is 0.
local ZERO = -2147483648

local SEQUENCE = "sequence"

local HEAD, CELL = ffi.sizeof("struct hg_traffic_series"), ffi.sizeof("struct hg_traffic_cell")
local NATIVE = ffi.sizeof("struct hg_traffic_native")
local buffer = ffi_new("uint8_t[?]", HEAD + CELL * traffic.CELLS)
local head = ffi_cast("struct hg_traffic_series *", buffer)
local cells = ffi_cast("struct hg_traffic_cell *", buffer + HEAD)
local number = ffi_new("double[1]")

local reports = 0


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


-- natives_of(all) -> what is in buckets of native histograms, how many there are
local function natives_of(all)
    local list, count = {}, 0
    for h, buckets in ipairs(all) do
        for key, value in pairs(buckets) do
            local one = ffi_new("struct hg_traffic_native", h - 1, key == "zero" and ZERO or key, value)
            count = count + 1
            list[count] = ffi_string(one, NATIVE)
        end
    end
    return table_concat(list), count
end


-- pack appends a series to the texts of a report.
local function pack(texts, series)
    local labels = labels_of(series.group)
    local counts, count = series.counts, 0
    for i = 0, traffic.CELLS - 1 do
        local value = counts[i]
        if value ~= 0 then
            cells[count].place, cells[count].count = i, value
            count = count + 1
        end
    end
    local natives, native_count = "", 0
    if series.native then
        natives, native_count = natives_of(series.native)
    end
    head.labels, head.cells, head.natives = #labels, count, native_count
    head.status, head.method = series.status, series.method
    local n = #texts
    texts[n + 1], texts[n + 2], texts[n + 3] = ffi_string(buffer, HEAD + count * CELL), natives, labels
end


-- add writes a report. -> whether there was room
local function add(texts, without_ingress)
    number[0] = without_ingress
    local name = dictionary:incr(SEQUENCE, 1)
    local value = ffi_string(number, 8) .. table_concat(texts)
    return name ~= nil and dictionary:safe_add("r" .. string.format("%d", name), value) == true
end


-- report(list, from, to) -> whether there was room for a report of these series
local function report(list, from, to)
    local texts = {}
    for i = from, to do
        pack(texts, list[i])
    end
    return add(texts, 0)
end


-- Reports all that was counted since the last time.
function _M.run()
    local list, without_ingress = traffic.take()
    local room = true
    for from = 1, #list, SERIES do
        local to = math_min(from + SERIES - 1, #list)
        room = room and report(list, from, to)
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
            list[#list + 1] = '"' .. name .. '":"' .. ngx.encode_base64(value) .. '"'
        end
    end
    return '{"reports":{' .. table_concat(list, ",") .. "}}"
end


return _M
