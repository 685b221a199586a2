-- What headers say about the trace of a request: those of W3C Trace Context (traceparent,
-- tracestate) and of B3, in one header (b3) or several (X-B3-*).
--
-- A client can write anything there. What is not valid counts as nothing, and no byte of it
-- is passed on.
local client = require "headgate.client"
local ffi = require "ffi"
local requests = require "headgate.request"
require "resty.core.request"

local _M = {}

local C = ffi.C
local header = client.header
local ngx_req = ngx.req
local string_byte = string.byte
local string_find = string.find
local string_lower = string.lower
local string_match = string.match
local string_rep = string.rep

local NO_TRACE, NO_SPAN = string_rep("0", 32), string_rep("0", 16)
local TRACE, SPAN, HALF_TRACE = 32, 16, 16
-- The first version, in which a traceparent has no more than its four fields.
local FIRST, INVALID = "00", "ff"
local TRACEPARENT = 55
-- A longer tracestate need not be passed on.
local MAX_STATE = 512

-- Of a request with more headers, all are read.
local HEADERS = 64
local headers = ffi.new("ngx_http_lua_ffi_table_elt_t[?]", HEADERS)
local truncated = ffi.new("int[1]")
local A, B, THREE, T, X = 97, 98, 51, 116, 120


local function is_hex(text)
    return text and not string_find(text, "[^0-9a-f]")
end


-- trace_id(text) -> the id as 32 digits, nil if it is not one. B3 has short ones as well.
local function trace_id(text, may_be_short)
    if not is_hex(text) then
        return nil
    end
    if may_be_short and #text == HALF_TRACE then
        text = NO_SPAN .. text
    end
    return #text == TRACE and text ~= NO_TRACE and text or nil
end


local function span_id(text)
    return is_hex(text) and #text == SPAN and text ~= NO_SPAN and text or nil
end


-- read_w3c(text) -> the context, nil if the text is not a traceparent
local function read_w3c(text)
    local version, trace, span, flags, rest = string_match(text, "^(%x%x)%-(%x+)%-(%x+)%-(%x%x)(.*)$")
    if not is_hex(version) or version == INVALID or not is_hex(flags) then
        return nil
    end
    if #text ~= TRACEPARENT and (version == FIRST or string_byte(rest) ~= 45) then
        return nil
    end
    trace, span = trace_id(trace), span_id(span)
    if not trace or not span then
        return nil
    end
    -- The lowest bit.
    local last = string_byte(flags, 2)
    return { trace = trace, parent = span, sampled = last % 2 == (last < 97 and 1 or 0) }
end


local DECISIONS = { ["1"] = true, ["0"] = false, d = true, ["true"] = true, ["false"] = false }


-- with_decision notes what B3 says about sampling. -> the context, nil if it is not a decision
local function with_decision(context, text)
    if text and DECISIONS[text] == nil then
        return nil
    end
    if text then
        context.sampled = DECISIONS[text]
        context.debug = text == "d" or nil
    end
    return context
end


-- read_b3(text) -> the context, nil if the text is not a header b3
local function read_b3(text)
    text = string_lower(text)
    local trace, span, rest = string_match(text, "^(%x+)%-(%x+)(.*)$")
    if not trace then
        return with_decision({}, text)
    end
    trace, span = trace_id(trace, true), span_id(span)
    local decision, parent = string_match(rest, "^%-(%l?%d?)(.*)$")
    if not trace or not span or rest ~= "" and not decision
        or decision and parent ~= "" and not span_id(string_match(parent, "^%-(%x+)$")) then
        return nil
    end
    return with_decision({ trace = trace, parent = span }, decision)
end


-- read_several() -> the context of the headers X-B3-*, nil if they are none
local function read_several()
    local sent_trace, sent_span = header("x_b3_traceid"), header("x_b3_spanid")
    local decision = header("x_b3_flags") == "1" and "d" or header("x_b3_sampled")
    decision = decision and string_lower(decision)
    if not sent_trace and not sent_span then
        return decision and with_decision({}, decision)
    end
    local trace = trace_id(string_lower(sent_trace or ""), true)
    local span = span_id(string_lower(sent_span or ""))
    return trace and span and with_decision({ trace = trace, parent = span }, decision)
end


-- state() -> the tracestate, nil if there is none, or none that may be passed on
local function state()
    local text = header("tracestate")
    if text and #text <= MAX_STATE and not string_find(text, "[^ -~\t]") and string_find(text, "=", 1, true) then
        return text
    end
end


-- read(distrusts) -> what the client sent:
--   trace, parent  the ids of its trace and of its span; nil if there are none, or the client is
--                  not trusted
--   sampled        whether it samples, nil if it leaves that to others
--   debug          whether B3 asks for a sample in any case
--   state          the tracestate
--   b3, several    whether B3 is to be passed on, in one header or in several
-- traceparent counts before b3, and that before X-B3-*.
function _M.read(distrusts)
    local b3 = header("b3")
    local several = header("x_b3_traceid") or header("x_b3_sampled") or header("x_b3_flags") or header("x_b3_spanid")
        or header("x_b3_parentspanid")
    local context
    if not distrusts then
        local parent = header("traceparent")
        context = parent and read_w3c(parent)
        if context then
            context.state = state()
        end
        context = context or b3 and read_b3(b3) or several and read_several() or nil
    end
    context = context or {}
    context.b3, context.several = b3 ~= nil, several ~= nil
    return context
end


-- is_of_trace(name, length) -> whether a header may be one of those that read reads; name is in
-- lower case
local function is_of_trace(name, length)
    if length < 10 then
        return length == 2 and name[0] == B and name[1] == THREE
    end
    local first = name[0]
    return first == T and name[2] == A or first == X and name[2] == B and name[3] == THREE
end


-- is_sent(r) -> whether a client may have sent something about a trace. Reading NGINX's list of
-- headers takes a third of what their variables would take.
function _M.is_sent(r)
    local count = C.ngx_http_lua_ffi_req_get_headers_count(r, HEADERS, truncated)
    if truncated[0] ~= 0 or C.ngx_http_lua_ffi_req_get_headers(r, headers, count, 0) ~= 0 then
        return true
    end
    for i = 0, count - 1 do
        local key = headers[i].key
        if is_of_trace(key.data, key.len) then
            return true
        end
    end
    return false
end


-- Drops a tracestate that is not the context's, and writes the other headers again: backends get this
-- trace and span.
function _M.write(context, trace, span, sampled)
    requests.set_trace("00-" .. trace .. "-" .. span .. (sampled and "-01" or "-00"))
    if not context then
        return
    end
    if not context.state and header("tracestate") then
        ngx_req.clear_header("tracestate")
    end
    local debug = sampled and context.debug
    if context.b3 then
        ngx_req.set_header("b3", trace .. "-" .. span .. (debug and "-d" or sampled and "-1" or "-0"))
    end
    if context.several then
        ngx_req.set_header("X-B3-TraceId", trace)
        ngx_req.set_header("X-B3-SpanId", span)
        ngx_req.clear_header("X-B3-ParentSpanId")
        ngx_req.set_header("X-B3-Sampled", not debug and (sampled and "1" or "0") or nil)
        ngx_req.set_header("X-B3-Flags", debug and "1" or nil)
    end
end


return _M
