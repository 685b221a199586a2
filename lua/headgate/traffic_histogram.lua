-- The histograms of traffic.lua: places in the counts of a series for each, and buckets of
-- native ones in tables.
--
-- What a usual request adds to is near to each other in memory: with many series, most of the
-- time goes into fetching it. So all sums come first, and buckets of histograms with the same
-- bounds take turns.
local ffi = require "ffi"
local settings = require "headgate.settings"

local _M = {}

local ffi_cast = ffi.cast
local ffi_new = ffi.new
local math_ceil = math.ceil
local math_log = math.log

-- How many values have an entry in a table that says which bucket they are in.
local QUICK = 4096
_M.QUICK = QUICK

local own = settings.traffic
local schema = own.schema
local native_factor = schema and 2 ^ schema
local LN2 = math_log(2)

-- By place in the counts of a series: its number in a report, where the sum and the buckets
-- of each histogram follow each other (internal/observe/traffic/family.go). The first place is the
-- number of requests.
local numbers = { [0] = 0 }
local next_number = 1
local next_place = 1
-- All sums, before all buckets.
local SUMS = 7
local next_bucket = 1 + SUMS


-- new(bounds, first, step, native) -> a histogram whose buckets are at first, first + step, and
-- so on; native: the number of the native one, nil for none
local function new(bounds, first, step, native)
    local sum, last = next_place, #bounds
    next_place = next_place + 1
    numbers[sum] = next_number
    for i = 0, last do
        numbers[first + step * i] = next_number + 1 + i
    end
    next_number = next_number + last + 2
    local table = ffi_new("uint16_t[?]", QUICK)
    for value = 0, QUICK - 1 do
        local i = 0
        while i < last and value > bounds[i + 1] do
            i = i + 1
        end
        table[value] = first + step * i
    end
    return {
        bounds = bounds, first = first, step = step, sum = sum, native = native,
        -- By value, the place of its bucket. A pointer is a constant in compiled code.
        quick = ffi_cast("const uint16_t *", table), table = table,
    }
end


-- several(bounds, natives) -> histograms with these bounds
local function several(bounds, natives, count)
    local list = {}
    for i = 1, count do
        list[i] = new(bounds, next_bucket + i - 1, count, natives and natives + i - 1)
    end
    next_bucket = next_bucket + count * (#bounds + 1)
    return unpack(list)
end


-- Times are in milliseconds.
_M.request_time, _M.connect_time, _M.header_time, _M.response_time = several(own.time, 1, 4)
_M.request_size, _M.response_size = several(own.length, 5, 2)
_M.bytes_sent = several(own.size, nil, 1)

_M.numbers, _M.CELLS = numbers, next_bucket


-- Counts a value in a bucket of a growing width. unit: what is 1 of the metric
function _M.observe_native(series, where, value, unit)
    local all = series.native
    if not all then
        all = { {}, {}, {}, {}, {}, {} }
        series.native = all
    end
    local buckets = all[where.native]
    local key = "zero"
    if value > 0 then
        -- What is on a bound is in the bucket below it.
        key = math_ceil(math_log(value / unit) / LN2 * native_factor - 1e-9)
    end
    buckets[key] = (buckets[key] or 0) + 1
end


-- place_of(where, value) -> the place of the bucket of a value
function _M.place_of(where, value)
    if value < QUICK then
        return where.quick[value]
    end
    local bounds = where.bounds
    local i = #bounds
    while i > 0 and value <= bounds[i] do
        i = i - 1
    end
    return where.first + where.step * i
end


return _M
