-- Makes spans of requests, where nginx.conf says that there is a collector.
--
-- Routing enters a request whose route is traced. If it is sampled, it has a table here under
-- the address that NGINX has the request at, as in traffic.lua, until the log phase makes its
-- spans (span.lua). The others only pass the decision on to the backend.
--
-- A request has a span of its own, one for the call to an auth service, and one for each try
-- of a backend. NGINX sends the same header with every try, so it names the span of the last
-- one.
local access_log = require "headgate.access_log"
local base = require "resty.core.base"
local contexts = require "headgate.trace_context"
local ffi = require "ffi"
local reports = require "headgate.span_report"
local request_id = require "headgate.request_id"
local settings = require "headgate.settings"
local span = require "headgate.span"
local template = require "headgate.template"
require "resty.core.request"
require "resty.core.time"
require "resty.core.var"

local _M = {}

-- Whether the access log has the trace of a request.
local logged = access_log.has_traces
-- Without request metrics there is none.
local traffic = settings.traffic and require "headgate.traffic"

local C = ffi.C
local ffi_cast = ffi.cast
local ffi_new = ffi.new
local get_request = base.get_request
local next_id = request_id.next
local ngx_start_time = ngx.req.start_time
local ngx_var = ngx.var
local set_header = ngx.req.set_header
local string_format = string.format
local string_sub = string.sub
local tonumber = tonumber

ffi.cdef [[
struct headgate_trace_time { long seconds, microseconds; };
int gettimeofday(struct headgate_trace_time *time, void *zone);
]]

local clock = ffi_new("struct headgate_trace_time[1]")

-- The variable that is empty if the client sent nothing about a trace.
local VARIABLE = "hg_trace_sent"
local lower_case = ffi_new("char[?]", #VARIABLE)
local value_pointer, value_length = ffi_new("char *[1]"), ffi_new("size_t[1]")
local message = ffi_new("char *[1]")

-- The half of a trace's id that decides about a sample, as samplers of OpenTelemetry have it.
local LATTER = 17
-- Behind all digits.
local ALL = "g"
local TWO_32 = 0x100000000

-- The settings without keys: usualTracing in internal/unit/tracing.go.
local USUAL = { ratio = 1, parent_based = true, queue_size = 2048 }

-- Which traces begin with a sample: those whose latter half is below this text; "" for none.
-- parent_based: whether the client decides where it sent a trace.
local below, parent_based = "", true

-- Sampled requests, by their addresses, and how many there are.
local spans, alive = {}, 0


-- Takes the settings of tracing at a new revision: type packedTracing in
-- internal/unit/tracing.go. nil stands for what is usual.
function _M.set(tracing)
    tracing = tracing or USUAL
    local ratio = tracing.ratio
    if ratio >= 1 then
        below = ALL
    elseif ratio <= 0 then
        below = ""
    else
        local high = ratio * TWO_32
        local low = (high % 1) * TWO_32
        below = string_format("%08x%08x", high - high % 1, low - low % 1)
    end
    parent_based = tracing.parent_based or false
    reports.set_limit(tracing.queue_size)
end


local function now()
    C.gettimeofday(clock, nil)
    return tonumber(clock[0].seconds) * 1000000 + tonumber(clock[0].microseconds)
end


local function address_of(r)
    return tonumber(ffi_cast("uintptr_t", r))
end


-- The table of this request if it is sampled, its address.
local function current()
    if alive == 0 then
        return nil
    end
    local address = address_of(get_request())
    return spans[address], address
end


-- begin makes the table of a sampled request. ids: 32 random digits.
local function begin(r, route, trace, ids, sent)
    local made = {
        route = route, trace = trace, id = string_sub(ids, 1, 16), start = ngx_start_time() * 1000000,
        -- The span of the last try of a backend.
        last = string_sub(ids, LATTER), sent = sent, path = ngx_var.uri, tries = {}, calls = false,
    }
    local name = route.trace.name
    if name then
        made.name = template.fill(name, { route = route, host_name = ngx_var.host, path = made.path })
    end
    spans[address_of(r)] = made
    alive = alive + 1
    contexts.write(sent, trace, made.last, true)
    if logged then
        access_log.describe_trace(trace, made.id, made.last, "-01")
    end
end


-- enter_sent enters a request whose client sent something about a trace.
local function enter_sent(r, route)
    local sent = contexts.read(route.trace.distrusts)
    local trace, ids = sent.trace or next_id(), next_id()
    if not trace or not ids then
        return
    end
    local sampled = sent.sampled
    if sampled == nil or not parent_based then
        sampled = string_sub(trace, LATTER) < below
    end
    if sampled then
        return begin(r, route, trace, ids, sent)
    end
    local last = parent_based and sent.parent or string_sub(ids, 1, 16)
    contexts.write(sent, trace, last, false)
    if logged then
        access_log.describe_trace(trace, nil, last, "-00")
    end
end


-- Enters a request for a route that is traced.
function _M.enter(route)
    local r = get_request()
    if alive > 0 and spans[address_of(r)] then
        -- NGINX routes it once more.
        return
    end
    if C.ngx_http_lua_ffi_var_get(r, VARIABLE, #VARIABLE, lower_case, 0, value_pointer, value_length, message) == 0
        and value_length[0] > 0 then
        return enter_sent(r, route)
    end
    local trace = next_id()
    if not trace then
        return
    end
    if string_sub(trace, LATTER) < below then
        local ids = next_id()
        return ids and begin(r, route, trace, ids)
    end
    -- There is no span with this id: none is made of this trace here.
    local last = string_sub(trace, 1, 16)
    set_header("traceparent", "00-" .. trace .. "-" .. last .. "-00")
    if logged then
        access_log.describe_trace(trace, nil, last, "-00")
    end
end


-- Notes that a backend is tried now.
function _M.try()
    local one = current()
    if one then
        one.tries[#one.tries + 1] = now()
    end
end


-- begin_call(server) -> the call of another service that the request makes now, nil
-- if it has no spans. The service gets this call's span as its parent, until resume.
function _M.begin_call(server)
    local one = current()
    local ids = one and next_id()
    if not ids then
        return nil
    end
    local call = { id = string_sub(ids, 1, 16), start = now(), server = server }
    one.calls = one.calls or {}
    one.calls[#one.calls + 1] = call
    contexts.write(one.sent, one.trace, call.id, true)
    return call
end


-- Ends a call, with its status.
function _M.end_call(call, status)
    call.finish, call.status = now(), status
end


-- Backends get their own parent from now on.
function _M.resume()
    local one = current()
    if one and one.calls then
        contexts.write(one.sent, one.trace, one.last, true)
    end
end


-- The log phase.
function _M.log()
    local one, address = current()
    if not one then
        return
    end
    spans[address] = nil
    alive = alive - 1
    if traffic and traffic.trace then
        traffic.trace(one.trace)
    end
    span.write(one, now(), reports.add)
end


return _M
