-- The series of requests that a worker counts, and the memory of their counts.
--
-- Counts are kept by group and series. A group is a route with the name that it was asked by;
-- a series of it is a method with a status. Both are found by keys that are there already, so
-- that no text is made for a request.
local ffi = require "ffi"
local histograms = require "headgate.traffic_histogram"
local settings = require "headgate.settings"
local table_new = require "table.new"

local _M = {}

local ffi_fill = ffi.fill
local ffi_new = ffi.new
local math_floor = math.floor
local ngx_var = ngx.var
local string_find = string.find
local string_match = string.match
local string_sub = string.sub

local per_host, any_host = settings.traffic.per_host, settings.traffic.any_host

-- Statuses times this, plus NGINX's bit of a method, are keys of series.
local METHODS = 0x100000
_M.METHODS = METHODS

-- With so many series that could not be reported, further ones are counted as one of their
-- namespace: no controller takes reports.
local MAX_SERIES = 20000
local OTHERS = "_others"

-- Stand for the route of a request without one, and for the name of any request.
local NO_ROUTE, ANY_NAME = {}, {}
_M.NO_ROUTE, _M.ANY_NAME = NO_ROUTE, ANY_NAME

local CELLS = histograms.CELLS
local BYTES = 8 * CELLS

-- By name unit or by name, and by route: groups.
local groups = {}
-- Series with counts that were not reported yet, and memory for others.
local active, active_count = {}, 0
local free, free_count = {}, 0
local others = {}
local made = 0


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
            unit = "", namespace = namespace, ingress = OTHERS, service = "", path = "", canary = "",
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
        -- It may have its last request's counts, see find.
        route = not canary and route ~= NO_ROUTE and route or nil,
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
        if group.ingress ~= OTHERS then
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
        counts = ffi_new("double[?]", CELLS)
    end
    series.counts = counts
    active_count = active_count + 1
    active[active_count] = series
    return counts
end


-- group_of(name, route, canary) -> the group of a request
local function group_of(name, route, canary)
    local key = not per_host and ANY_NAME or any_host and (ngx_var.host or "-") or name
    local group = groups[key]
    group = group and group[route] or new_group(key, route, name)
    if canary then
        group = group.canaries and group.canaries[canary] or new_group(key, route, name, canary)
    end
    return group
end


-- find(name, route, canary, key) -> the series of a request, and its counts. The route has them
-- for its next request: with many routes, that fetches far less memory.
function _M.find(name, route, canary, key)
    local group = group_of(name, route, canary)
    local series = group.series[key] or new_series(group, key)
    local counts = series.counts or activate(series)
    if group.route == route and series.group == group then
        route.counted_name, route.counted_key, route.counts = name, key, counts
    end
    return series, counts
end


-- take() -> the active series. They are no longer active: reported or give_back is to be called
-- for each.
function _M.take()
    local list = active
    active, active_count = table_new(#list, 0), 0
    return list
end


-- Makes a series active again, since its counts could not be reported.
function _M.give_back(series)
    active_count = active_count + 1
    active[active_count] = series
end


-- Takes the memory of counts that were reported.
function _M.reported(series)
    local counts = series.counts
    ffi_fill(counts, BYTES)
    series.counts, series.native, series.traces = false, nil, nil
    local route = series.group.route
    if route and route.counts == counts then
        route.counted_key, route.counts = nil, nil
    end
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
