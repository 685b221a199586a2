-- What auth-snippet and global-auth-snippet do to the call of an auth service.
local program = require "headgate.program"

local _M = {}

local ipairs = ipairs
local string_lower = string.lower

local EMPTY = {}

-- The headers that a call always has, in lower case.
local DOUBLE = {
    ["host"] = true, ["x-auth-request-redirect"] = true, ["x-forwarded-for"] = true,
    ["x-original-method"] = true,
    ["x-original-url"] = true, ["x-real-ip"] = true, ["x-request-id"] = true, ["x-sent-from"] = true,
}

-- Those that are not for a snippet: they are about the connection, or end a circle of calls.
local NEVER = {
    ["connection"] = true, ["expect"] = true, ["keep-alive"] = true, ["proxy"] = true, ["te"] = true,
    ["upgrade"] = true, ["x-headgate-checks"] = true,
}


-- run(snippet, request) runs the steps of a call's program. -> the status that they answer
-- the call with, nil if the service is to be asked
function _M.run(snippet, request)
    local state = program.state(request)
    local effects = snippet.effects or EMPTY
    local call = { location = effects[1] }
    -- A call has its own groups of expressions, and the variables of its request.
    local captures = state.captures
    state.call, state.captures = call, EMPTY
    program.run(snippet.steps or EMPTY, request, request.route.namespace, effects)
    state.called_captures = state.captures
    state.call, state.captures, state.called = nil, captures, call.location
    return call.status
end


-- headers(request) -> a list of { name, lower, double, values } of the headers that the steps
-- left in effect, each name once. double: whether the call has it already. values: without
-- empty ones. Nothing of the request is changed yet, so all are of the client's headers.
function _M.headers(request)
    local state = request.program
    local effects = state.called
    local list, by_name = {}, {}
    local captures = state.captures
    state.captures = state.called_captures
    for _, header in ipairs(effects and effects.request_headers or EMPTY) do
        local lower = string_lower(header.name)
        if not NEVER[lower] then
            local one = by_name[lower]
            if not one then
                one = { name = header.name, lower = lower, double = DOUBLE[lower], values = {} }
                by_name[lower] = one
                list[#list + 1] = one
            end
            local value = program.fill(header.value, request)
            if value ~= "" then
                one.values[#one.values + 1] = value
            end
        end
    end
    state.captures = captures
    return list
end


return _M
