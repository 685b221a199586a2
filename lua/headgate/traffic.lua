-- Counts requests, where request metrics are enabled: in each worker, in memory of its own,
-- when a request is over. traffic_report.lua takes the counts from here once a second.
--
-- Routing notes the route of a request under the address that NGINX has the request at. It
-- stays the same over jumps, and the log phase, which every request has, takes it away.
local C = require("ffi").C
local base = require "resty.core.base"
local ffi = require "ffi"
local histograms = require "headgate.traffic_histogram"
local requests = require "headgate.traffic_request"
local series_of = require "headgate.traffic_series"
local settings = require "headgate.settings"
require "resty.core.misc"
require "resty.core.request"
require "resty.core.time"

local _M = {}

local ffi_cast = ffi.cast
local get_request = base.get_request
local math_floor = math.floor
local ngx_now = ngx.now
local ngx_start_time = ngx.req.start_time
local observe_native, place_of, QUICK = histograms.observe_native, histograms.place_of, histograms.QUICK
local find, METHODS = series_of.find, series_of.METHODS
local NO_ROUTE, ANY_NAME = series_of.NO_ROUTE, series_of.ANY_NAME
local read = requests.read
local string_find = string.find
local tonumber = tonumber

local own = settings.traffic
local per_host, any_host, classes, schema = own.per_host, own.any_host, own.classes, own.schema
-- Whether a series must be looked up even if it is that of the route's last request.
local look_up = any_host or schema ~= nil

-- By address: the route of a request and the name unit that it was asked by, and, if another
-- backend was chosen, that, and the id of its trace, if it has one. A route is false for
-- requests that are not counted.
local routes, names, chosen, traces = {}, {}, {}, {}
local chosen_count, traced_count = 0, 0

-- How many requests were not counted, since they are of no Ingress.
local without_ingress = 0
-- Reports each request at once, since this worker is about to end; nil before that.
local leaving

-- How many requests this worker has counted, where others see it (traffic_totals.lua).
local total = { requests = 0 }

-- What is counted beside the number of requests; false for families that are excluded.
local excluded = own.excluded
local function wanted(family, where)
    return not excluded[family] and where
end
local request_time = wanted("request_duration_seconds", histograms.request_time)
local connect_time = wanted("connect_duration_seconds", histograms.connect_time)
local header_time = wanted("header_duration_seconds", histograms.header_time)
local response_time = wanted("response_duration_seconds", histograms.response_time)
local request_size = wanted("request_size", histograms.request_size)
local response_size = wanted("response_size", histograms.response_size)
local bytes_sent = wanted("bytes_sent", histograms.bytes_sent)
local by_request = connect_time or header_time or response_time or request_size or response_size or bytes_sent


-- address_of(r) -> a number that only this request has as long as it lives
local function address_of(r)
    return tonumber(ffi_cast("uintptr_t", r))
end


-- Notes the route of the request, and the name unit that it was asked by.
function _M.enter(route, name)
    local address = address_of(get_request())
    routes[address], names[address] = route, name
end


-- Notes that the request is not to be counted.
function _M.skip()
    routes[address_of(get_request())] = false
end


-- Notes that another backend than the route's was chosen.
function _M.choose(canary)
    local address = address_of(get_request())
    if not chosen[address] then
        chosen_count = chosen_count + 1
    end
    chosen[address] = canary
end


-- Notes the id of the request's trace, which are 32 hexadecimal digits in lower case: an example
-- of its bucket. For requests of which a trace is kept, before log runs.
function _M.trace(id)
    if #id ~= 32 or string_find(id, "[^0-9a-f]") then
        return
    end
    local address = address_of(get_request())
    if not traces[address] then
        traced_count = traced_count + 1
    end
    traces[address] = id
end


-- Counts a value of a histogram. What is above it in compiled code are constants.
local function observe(counts, where, value)
    if not where or value < 0 then
        return
    end
    local sum = where.sum
    counts[sum] = counts[sum] + value
    local at = value < QUICK and where.quick[value] or place_of(where, value)
    counts[at] = counts[at] + 1
end


local function observe_natives(series, time, received, sent, connect, header, response)
    local function one(where, value, unit)
        if where and value >= 0 then
            observe_native(series, where, value, unit)
        end
    end
    one(request_time, time, 1000)
    one(connect_time, connect, 1000)
    one(header_time, header, 1000)
    one(response_time, response, 1000)
    one(request_size, received, 1)
    one(response_size, sent, 1)
end


-- forget_choice(address) -> the backend that was chosen for a request
local function forget_choice(address)
    local canary = chosen[address]
    if canary then
        chosen[address], chosen_count = nil, chosen_count - 1
    end
    return canary
end


-- forget_trace(address) -> the id of a request's trace
local function forget_trace(address)
    local id = traces[address]
    if id then
        traces[address], traced_count = nil, traced_count - 1
    end
    return id
end


-- is_counted reports whether requests without an Ingress are in series.
local function is_counted()
    if any_host or not per_host then
        return true
    end
    without_ingress = without_ingress + 1
    return false
end


-- note_trace keeps the request as an example of its bucket.
local function note_trace(series, id, time)
    local all = series.traces
    if not all then
        all = {}
        series.traces = all
    end
    all[place_of(histograms.request_time, time)] = { id = id, value = time, time = ngx_now() }
end


-- The log phase.
function _M.log()
    local r = get_request()
    local address = address_of(r)
    local route, name = routes[address], names[address] or ANY_NAME
    routes[address], names[address] = nil, nil
    local canary = chosen_count > 0 and forget_choice(address)
    local trace = traced_count > 0 and forget_trace(address)
    if route == false then
        return
    end
    total.requests = total.requests + 1
    if (not route or not route.ingress) and not is_counted() then
        return leaving and leaving()
    end
    route = route or NO_ROUTE
    local status = C.ngx_http_lua_ffi_get_resp_status(r)
    if classes then
        status = status - status % 100
    end
    local key = status * METHODS + C.ngx_http_lua_ffi_req_get_method(r)
    local series, counts
    if look_up or route.counted_key ~= key or route.counted_name ~= name or canary or trace then
        series, counts = find(name, route, canary, key)
    else
        counts = route.counts
    end
    counts[0] = counts[0] + 1
    local time = math_floor((ngx_now() - ngx_start_time()) * 1000 + 0.5)
    observe(counts, request_time, time)
    if by_request then
        local received, sent, connect, header, response = read(r)
        observe(counts, connect_time, connect)
        observe(counts, header_time, header)
        observe(counts, response_time, response)
        observe(counts, request_size, received)
        observe(counts, response_size, sent)
        observe(counts, bytes_sent, sent)
        if schema then
            observe_natives(series, time, received, sent, connect, header, response)
        end
    end
    if trace then
        note_trace(series, trace, time)
    end
    if leaving then
        leaving()
    end
end


-- Has the worker's requests counted in where.requests as well.
function _M.count_in(where)
    total = where
end


-- Has each request reported at once from now on.
function _M.leave(report)
    leaving = report
end


-- take_without_ingress() -> the number of requests that are of no Ingress, since it was last called
function _M.take_without_ingress()
    local count = without_ingress
    without_ingress = 0
    return count
end


function _M.give_back_without_ingress(count)
    without_ingress = without_ingress + count
end


return _M
