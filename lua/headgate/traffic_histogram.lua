-- The histograms of traffic.lua: a place in the counts of a series for each, and buckets of
-- native ones in tables.
local ffi = require "ffi"
local settings = require "headgate.settings"

local _M = {}

local ffi_new = ffi.new
local math_ceil = math.ceil
local math_log = math.log

-- How many values have an entry in a table that says which bucket they are in.
local QUICK = 4096

local schema = settings.traffic.schema
local native_factor = schema and 2 ^ schema
local LN2 = math_log(2)


-- new(bounds, offset) -> the place of a histogram in the counts: a sum, the counts of
-- its buckets, and that of larger values. next: the offset behind it
function _M.new(bounds, offset)
    local quick = ffi_new("uint8_t[?]", QUICK)
    for value = 0, QUICK - 1 do
        local i = 0
        while i < #bounds and value > bounds[i + 1] do
            i = i + 1
        end
        quick[value] = i
    end
    return { bounds = bounds, count = #bounds, quick = quick, offset = offset, next = offset + #bounds + 2 }
end


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


-- Counts a value in a bucket of given bounds.
function _M.observe(counts, where, value)
    local offset = where.offset
    counts[offset] = counts[offset] + value
    local i
    if value < QUICK then
        i = where.quick[value]
    else
        local bounds = where.bounds
        i = where.count
        while i > 0 and value <= bounds[i] do
            i = i - 1
        end
    end
    offset = offset + 1 + i
    counts[offset] = counts[offset] + 1
end


return _M
