-- What the access log has of a request beside what NGINX knows: its route, its trace, and the
-- names of backends. It is the only writer of these variables. NGINX has one only if the format names
-- it, and requests cost nothing for others.
local settings = require "headgate.settings"

local _M = {}

local ngx_var = ngx.var
local string_byte = string.byte
local string_gsub = string.gsub
local string_match = string.match
local string_sub = string.sub

-- Without the log there is none.
local log = settings.log
local names_backend = log and log.backend
local names_canary = log and log.canary
local traces = log and log.traces
-- Without request metrics there is none.
local traffic = settings.traffic and require "headgate.traffic"

local CARET = 94


-- A part of the key of the route's own backend; none for the default backend.
local function part_of_backend(pattern)
    return function(route)
        return route.backend and not route.default and string_match(route.backend, pattern)
    end
end


local FIELDS = {
    namespace = function(route) return route.namespace end,
    ingress_name = function(route) return route.ingress end,
    service_name = part_of_backend("^[^/]*/([^/]*)/"),
    service_port = part_of_backend("^[^/]*/[^/]*/(.*)$"),
    location_path = function(route)
        local path = route.path
        if string_byte(path) == CARET then
            return string_sub(path, 2)
        end
        return route.slash and path .. "/" or path
    end,
    server_name = function(_, host_name) return host_name end,
}


-- fields_of(route, host_name) -> a flat list variable, value, variable, …, nil if there are
-- none
local function fields_of(route, host_name)
    local list
    for _, name in ipairs(log.fields) do
        local value = FIELDS[name](route, host_name)
        if value then
            list = list or {}
            list[#list + 1] = "hg_log_" .. name
            -- The format may be one that escapes nothing.
            list[#list + 1] = string_gsub(value, "%c", "")
        end
    end
    return list
end


-- Notes in a route of a host, when that is decoded, what describe needs of it.
function _M.prepare(route, packed, host_name)
    if not log then
        return
    end
    if packed.unlogged then
        route.unlogged = true
    end
    if log.fields then
        route.log_fields = fields_of(route, host_name)
    end
end


-- Describes the route of the request.
function _M.describe(route)
    if names_backend then
        ngx_var.proxy_upstream_name = route.backend_label
    end
    if route.unlogged then
        ngx_var.hg_log = "0"
    end
    local fields = route.log_fields
    if fields then
        for i = 1, #fields, 2 do
            local name = fields[i]
            ngx_var[name] = fields[i + 1]
        end
    end
end


-- Whether the format names anything of traces.
_M.has_traces = traces and true or false


-- Describes the trace of the request, where has_traces is set. own: the request's span,
-- nil if it has none; last: the one that backends get; flags: "-01" if it is sampled.
function _M.describe_trace(trace, own, last, flags)
    if traces.opentelemetry_trace_id then
        ngx_var.hg_log_opentelemetry_trace_id = trace
    end
    if traces.opentelemetry_span_id then
        ngx_var.hg_log_opentelemetry_span_id = own or ""
    end
    if traces.opentelemetry_context_traceparent then
        ngx_var.hg_log_opentelemetry_context_traceparent = "00-" .. trace .. "-" .. last .. flags
    end
end


-- Names the backend that answers instead of the route's own.
function _M.set_backend(label)
    if names_backend then
        ngx_var.proxy_upstream_name = label
    end
end


-- Names the backend that was chosen instead of the route's own, for request metrics too.
function _M.choose(label)
    if traffic then
        traffic.choose(label)
    end
    if names_canary then
        ngx_var.proxy_alternative_upstream_name = label
    end
end


-- Leaves the request out.
function _M.skip()
    if log then
        ngx_var.hg_log = "0"
    end
end


return _M
