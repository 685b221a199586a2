-- Counts requests, where request metrics are enabled: in each worker, in memory of its own,
-- when a request is over. traffic_report.lua takes the counts from here once a second.
--
-- Routing notes the route of a request under the address that NGINX has the request at. It
-- stays the same over jumps, and the log phase, which every request has, takes it away.
--
-- Counts are kept by group and series. A group is a route with the name that it was asked by;
-- a series of it is a method with a status. Both are found by keys that are there already, so
-- that no text is made for a request.
local C = require("ffi").C
local base = require "resty.core.base"
local ffi = require "ffi"
local histograms = require "headgate.traffic_histogram"
local requests = require "headgate.traffic_request"
local settings = require "headgate.settings"
local table_new = require "table.new"
require "resty.core.misc"
require "resty.core.request"
require "resty.core.time"

local _M = {}

local ffi_cast = ffi.cast
local ffi_fill = ffi.fill
local ffi_new = ffi.new
local get_request = base.get_request
local histogram = histograms.new
local math_floor = math.floor
local ngx_now = ngx.now
local ngx_start_time = ngx.req.start_time
local ngx_var = ngx.var
local read = requests.read
local observe, observe_native = histograms.observe, histograms.observe_native
local string_find = string.find
local string_match = string.match
local string_sub = string.sub
local tonumber = tonumber

local own = settings.traffic
local per_host, any_host, classes, schema = own.per_host, own.any_host, own.classes, own.schema

-- Statuses times this, plus NGINX's bit of a method, are keys of series.
local METHODS = 0x100000

-- With so many series that could not be reported, further ones are counted as one of their
-- namespace: no controller takes reports.
local MAX_SERIES = 20000
_M.OTHERS = "_others"

-- By address: the route of a request and the name unit that it was asked by, and, if another
-- backend was chosen, that. A route is false for requests that are not counted.
local routes, names, chosen = {}, {}, {}

local NO_ROUTE, ANY_NAME = {}, {}

-- By name unit or by name, and by route: groups.
local groups = {}
-- Series with counts that were not reported yet, and memory for others.
local active, active_count = {}, 0
local free, free_count = {}, 0
local others = {}
local made = 0
-- How many requests were not counted, since they are of no Ingress.
local without_ingress = 0
-- Reports each request at once, since this worker is about to end; nil before that.
local leaving


-- The counts of a series: the number of requests, and these histograms. Times are in
-- milliseconds.
local request_time = histogram(own.time, 1)
local connect_time = histogram(own.time, request_time.next)
local header_time = histogram(own.time, connect_time.next)
local response_time = histogram(own.time, header_time.next)
local request_size = histogram(own.length, response_time.next)
local response_size = histogram(own.length, request_size.next)
local bytes_sent = histogram(own.size, response_size.next)
_M.CELLS = bytes_sent.next

local BYTES = 8 * _M.CELLS

request_time.native, connect_time.native, header_time.native, response_time.native = 1, 2, 3, 4
request_size.native, response_size.native = 5, 6


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
    chosen[address_of(get_request())] = canary
end


-- host_label is a name as the Ingress has it: for a pattern, the host that it stands for.
local function host_label(name)
    local text = name.name
    if not text or string_find(text, "[*~]") then
        return name.host
    end
    return text
end


local function path_label(route)
    local path = route.path or ""
    return (string_sub(path, 1, 1) == "^" and string_sub(path, 2)) or route.slash and path .. "/" or path
end


-- group_of_others is the group of a namespace for what is not counted by itself.
local function group_of_others(namespace)
    local group = others[namespace]
    if not group then
        group = {
            unit = "", namespace = namespace, ingress = _M.OTHERS, service = "", path = "", canary = "",
            host = per_host and "" or nil, series = {},
        }
        others[namespace] = group
    end
    return group
end


-- new_group(key, route, name, canary) -> a group with its labels
local function new_group(key, route, name, canary)
    if made >= MAX_SERIES then
        return group_of_others(route.namespace or "")
    end
    local by_route = groups[key]
    if not by_route then
        by_route = {}
        groups[key] = by_route
    end
    local service = route.backend and not route.default and string_match(route.backend, "^.-/(.-)/")
    local group = {
        unit = name.host or "", namespace = route.namespace or "", ingress = route.ingress or "",
        service = service or "",
        path = path_label(route), canary = canary or "", series = {},
    }
    if per_host then
        group.host = any_host and key or host_label(name)
    end
    if canary then
        local first = by_route[route]
        if not first then
            first = new_group(key, route, name)
        end
        first.canaries = first.canaries or {}
        first.canaries[canary] = group
    else
        by_route[route] = group
    end
    made = made + 1
    return group
end


-- new_series(group, key) -> a series without counts
local function new_series(group, key)
    if made >= MAX_SERIES then
        if group.ingress ~= _M.OTHERS then
            group = group_of_others(group.namespace)
        end
        local status = math_floor(key / METHODS)
        key = (status >= 100 and math_floor(status / 100) * 100 or status) * METHODS
        if group.series[key] then
            return group.series[key]
        end
    end
    local series = { group = group, status = math_floor(key / METHODS), method = key % METHODS, counts = false }
    group.series[key] = series
    made = made + 1
    return series
end


-- activate gives a series memory for counts.
local function activate(series)
    local counts
    if free_count > 0 then
        counts = free[free_count]
        free_count = free_count - 1
    else
        counts = ffi_new("double[?]", _M.CELLS)
    end
    series.counts = counts
    active_count = active_count + 1
    active[active_count] = series
    return counts
end


local function observe_time(counts, series, where, value)
    if value >= 0 then
        observe(counts, where, value)
        if schema then
            observe_native(series, where, value, 1000)
        end
    end
end


local function observe_size(counts, series, where, value)
    if value >= 0 then
        observe(counts, where, value)
        if schema and where.native then
            observe_native(series, where, value, 1)
        end
    end
end


-- group_of(address, route) -> the group of a request
local function group_of(address, route)
    local name, canary = names[address] or ANY_NAME, chosen[address]
    local key = not per_host and ANY_NAME or any_host and (ngx_var.host or "-") or name
    local group = groups[key]
    group = group and group[route] or new_group(key, route, name)
    if canary then
        chosen[address] = nil
        group = group.canaries and group.canaries[canary] or new_group(key, route, name, canary)
    end
    return group
end


-- forget(address) -> the route that was noted for a request
local function forget(address)
    local route = routes[address]
    routes[address] = nil
    if route == nil or route and not route.ingress then
        if per_host and not any_host then
            without_ingress = without_ingress + 1
            names[address] = nil
            return false
        end
        route = route or NO_ROUTE
    end
    return route
end


-- The log phase.
function _M.log()
    local r = get_request()
    local address = address_of(r)
    local route = forget(address)
    if not route then
        return
    end
    local group = group_of(address, route)
    names[address] = nil
    local status = C.ngx_http_lua_ffi_get_resp_status(r)
    if classes then
        status = status - status % 100
    end
    local key = status * METHODS + C.ngx_http_lua_ffi_req_get_method(r)
    local series = group.series[key] or new_series(group, key)
    local counts = series.counts or activate(series)
    counts[0] = counts[0] + 1
    observe_time(counts, series, request_time, math_floor((ngx_now() - ngx_start_time()) * 1000 + 0.5))
    local received, sent, connect, header, response = read(r)
    if received then
        observe_size(counts, series, request_size, received)
        observe_size(counts, series, response_size, sent)
        observe_size(counts, series, bytes_sent, sent)
        observe_time(counts, series, connect_time, connect)
        observe_time(counts, series, header_time, header)
        observe_time(counts, series, response_time, response)
    end
    if leaving then
        leaving()
    end
end


-- Has each request reported at once from now on.
function _M.leave(report)
    leaving = report
end


-- take() -> the active series, and the number of requests without an Ingress. They are no
-- longer active: reported or give_back is to be called for each series.
function _M.take()
    local list, count = active, without_ingress
    active, active_count, without_ingress = table_new(#list, 0), 0, 0
    return list, count
end


-- Makes a series active again, since its counts could not be reported.
function _M.give_back(series)
    active_count = active_count + 1
    active[active_count] = series
end


function _M.give_back_without_ingress(count)
    without_ingress = without_ingress + count
end


-- Takes the memory of counts that were reported.
function _M.reported(series)
    local counts = series.counts
    ffi_fill(counts, BYTES)
    series.counts, series.native = false, nil
    free_count = free_count + 1
    free[free_count] = counts
end


-- Forgets groups and series, unless some are active: routes that were replaced go with them.
function _M.sweep(most)
    if active_count == 0 and made > most then
        groups, others, made = {}, {}, 0
        free, free_count = {}, 0
    end
end


return _M
