-- What snippets say besides steps: the effects of the blocks that apply to a request, which
-- request.program names once its steps have run (headgate.program). Rules for addresses
-- are in snippet_access.lua.
--
-- A route has this policy for its own snippet, and a host for its: what acts first does what
-- both say.
local access_log = require "headgate.access_log"
local backend_headers = require "headgate.backend_headers"
local auth_variables = require "headgate.feature.snippet_effects.auth_variables"
local error_pages = require "headgate.feature.snippet_effects.error_pages"
local request_headers = require "headgate.feature.snippet_effects.request_headers"
local response_headers = require "headgate.feature.snippet_effects.response_headers"
local program = require "headgate.program"
local replaced = require "headgate.replaced"
local requests = require "headgate.request"

local _M = {}

local ngx = ngx
local ngx_get_phase = ngx.get_phase
local string_lower = string.lower
local string_match = string.match
local tonumber = tonumber

local SIZES = { [""] = 1, k = 1024, m = 1024 * 1024 }


-- first is a member of the location's effects, or else of the server's.
local function first(state, name)
    local location, server = state.location, state.server
    return location and location[name] or server and server[name]
end


-- size is a number of bytes as in nginx.conf, nil if the text is none.
local function size(template, request)
    local number, unit = string_match(program.fill(template, request), "^(%d+)([kKmM]?)$")
    return number and tonumber(number) * SIZES[string_lower(unit)]
end


local function limit_rate(state, request)
    local template = first(state, "limit_rate")
    local rate = template and size(template, request)
    if rate and rate > 0 then
        local after = first(state, "limit_rate_after")
        requests.set_rate(rate, after and size(after, request) or 0)
    end
end


-- policy: { protocol, phases, keeps }: how the route's backend is asked, in which phases there
-- is something to do, and which headers of the auth service's response variables have.
function _M.applies(policy, phase)
    return policy.phases[phase] ~= nil
end


-- Before the client is authenticated: the check sees what a snippet sets.
function _M.preaccess(policy, request)
    local state = request.program
    request.keeps = policy.keeps or request.keeps
    if state and not state.has_input then
        state.has_input = true
        request_headers.input(request, state.server, state.location)
    end
end


-- set_request does so once it is known that the backend may be asked. The auth service gets
-- the headers of the client.
local function set_request(policy, request)
    local state = request.program
    if state and not state.has_request then
        state.has_request = true
        auth_variables.set_by_verdict(request)
        request_headers.backend(request, state.location, policy.protocol)
        limit_rate(state, request)
    end
end


function _M.request_headers(policy, request)
    if not request.route.identity or request.passed then
        return set_request(policy, request)
    end
end


_M.auth_passed = set_request


function _M.auth_response(_, request)
    if request.program then
        auth_variables.set_by_response(request)
    end
end


-- By now NGINX has made the request to the backend.
_M.balancer = function(_, request) return backend_headers.restore(request) end


function _M.error_page(_, request)
    local state = request.program
    local pages = state and first(state, "error_pages")
    if pages then
        auth_variables.set_by_verdict(request)
        return error_pages.run(request, pages)
    end
end


-- status_of is that of the response. Before the header filter, Headgate has just decided on it.
local function status_of(request)
    return ngx_get_phase() ~= "header_filter" and request.status or replaced.status() or ngx.status
end


function _M.header_filter(policy, request)
    local state = request.program
    if not state or state.filtered or not (state.server or state.location) then
        return
    end
    state.filtered = true
    auth_variables.set_by_verdict(request)
    if first(state, "unlogged") then
        access_log.skip()
    end
    local backend = request.tried and policy.protocol == "http"
    response_headers.apply(request, state.server, state.location, status_of(request), backend)
end


return _M
