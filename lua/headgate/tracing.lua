-- Notes what spans of requests are made of, where nginx.conf says that there is a collector.
--
-- Routing enters each request. One that is sampled jumps to a location with a log phase, and is
-- routed there. It has a table here under the address that NGINX has the request at, as in
-- traffic.lua, until that phase hands it over (span.lua, span_report.lua): the controller makes its
-- spans. The others only pass the decision on to the backend.
--
-- Most requests begin a trace here, and are not sampled. They cost what must be: a look at the
-- headers, and one at the id that the request gets. NGINX writes their traceparent from that id;
-- that of all others is written here.
--
-- A request has a span of its own, one for the call to an auth service, and one for each try
-- of a backend. NGINX sends the same header with every try, so it names the span of the last
-- one.
local access_log = require "headgate.access_log"
local base = require "resty.core.base"
local client = require "headgate.client"
local contexts = require "headgate.trace_context"
local ffi = require "ffi"
local reports = require "headgate.span_report"
local request_id = require "headgate.request_id"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local span = require "headgate.span"
local template = require "headgate.template"
require "resty.core.request"
require "resty.core.time"

local _M = {}

-- Whether the access log has the trace of a request.
local logged = access_log.has_traces
-- Without request metrics there is none.
local traffic = settings.traffic and require "headgate.traffic"

local C = ffi.C
local ffi_cast = ffi.cast
local ffi_new = ffi.new
local get_request = base.get_request
local next_id, number_of_next = request_id.next, request_id.number_of_next
local ngx_exec = ngx.exec
local ngx_start_time = ngx.req.start_time
local ngx_var = ngx.var
local string_sub = string.sub
local tonumber = tonumber

ffi.cdef [[
struct headgate_trace_time { long seconds, microseconds; };
int gettimeofday(struct headgate_trace_time *time, void *zone);
]]

local clock = ffi_new("struct headgate_trace_time[1]")

-- The half of a trace's id that decides about a sample, as samplers of OpenTelemetry have it.
local LATTER = 17
local TWO_32 = 0x100000000

-- Routes a sampled request in a location with a log phase.
local LOCATION = "@traced"

-- The settings without keys: usualTracing in internal/unit/tracing.go.
local USUAL = { ratio = 1, parent_based = true, queue_size = 2048 }

-- Which traces begin with a sample: those whose latter half begins with a number of 32 bits below this.
-- parent_based: whether the client decides where it sent a trace.
local below, parent_based = 0, true

-- Sampled requests, by their addresses, and how many there are.
local spans, alive = {}, 0
-- By call: the start of its request.
local starts = setmetatable({}, { __mode = "k" })


-- Takes the settings of tracing at a new revision: type packedTracing in
-- internal/unit/tracing.go. nil stands for what is usual.
function _M.set(tracing)
    tracing = tracing or USUAL
    below = tracing.ratio * TWO_32
    parent_based = tracing.parent_based or false
    reports.set_limit(tracing.queue_size)
end


-- since(start) -> the microseconds from there until now
local function since(start)
    C.gettimeofday(clock, nil)
    return tonumber(clock[0].seconds) * 1000000 + tonumber(clock[0].microseconds) - start
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


-- number_of(trace) -> what decides about a trace's sample
local function number_of(trace)
    return tonumber(string_sub(trace, LATTER, LATTER + 7), 16)
end


-- enter_sent enters a request whose client sent something about a trace. -> whether it is sampled
local function enter_sent(r, route)
    local sent = contexts.read(route.trace.distrusts)
    local trace, ids = sent.trace or next_id(), next_id()
    if not trace or not ids then
        return false
    end
    local sampled = sent.sampled
    if sampled == nil or not parent_based then
        sampled = number_of(trace) < below
    end
    if sampled then
        begin(r, route, trace, ids, sent)
        return true
    end
    local last = parent_based and sent.parent or string_sub(ids, 1, 16)
    contexts.write(sent, trace, last, false)
    if logged then
        access_log.describe_trace(trace, nil, last, "-00")
    end
    return false
end


-- enter_new enters a request that begins a trace. -> whether it is sampled
local function enter_new(r, route)
    local number = number_of_next()
    if number and number < below then
        local trace, ids = next_id(), next_id()
        if trace and ids then
            begin(r, route, trace, ids)
            return true
        end
    elseif logged then
        local trace = next_id()
        -- There is no span with this id: none is made of this trace here.
        local last = trace and string_sub(trace, 1, 16)
        if trace then
            contexts.write(nil, trace, last, false)
            access_log.describe_trace(trace, nil, last, "-00")
        end
    end
    return false
end


-- Enters a request for a route, and ends this phase if it must jump. jumped: it has jumped already.
function _M.enter(route, jumped)
    if not route.trace then
        requests.set_trace(client.header("traceparent") or "")
        return
    end
    local r = get_request()
    if alive > 0 and spans[address_of(r)] then
        -- It has jumped, or NGINX routes it once more.
        return
    end
    local sampled
    if contexts.is_sent(r) then
        sampled = enter_sent(r, route)
    else
        sampled = enter_new(r, route)
    end
    if sampled and not jumped then
        return ngx_exec(LOCATION)
    end
end


-- Notes that a backend is tried now.
function _M.try()
    local one = current()
    if one then
        one.tries[#one.tries + 1] = since(one.start)
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
    local call = { id = string_sub(ids, 1, 16), start = since(one.start), server = server }
    starts[call] = one.start
    one.calls = one.calls or {}
    one.calls[#one.calls + 1] = call
    contexts.write(one.sent, one.trace, call.id, true)
    return call
end


-- Ends a call, with its status. It has a request of its own in NGINX.
function _M.end_call(call, status)
    call.finish, call.status = since(starts[call]), status
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
    reports.add(span.write(one, since(one.start)))
end


return _M
