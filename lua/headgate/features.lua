-- The features' Lua modules. A module may have these functions, named by the
-- phase of NGINX that they run in or before. Most get the policy that the route
-- carries and the request (see request.lua):
--
--   before_route(policy, request)
--                             before a route is looked for, on hosts with a policy
--                             for that (HostOut.Server): may end the request, or
--                             change request.path
--   find_route(policy, request, path, route, second) -> route, second
--                             on such hosts: chooses the route of a path; route and
--                             second are what the host's own routes say (host:find)
--   begin(policy, request)    when the request's route is known, before all else
--   before_slash(policy, request)
--                             before a redirect to the same path with a slash at
--                             its end, on hosts with a policy for TLS handshakes;
--                             may end the request
--   rewrite(policy, request)  before a backend is selected; may end the request, or
--                             change its path (request.moved)
--   select_backend(policy, request)
--                             may set request.backend to another backend than
--                             the route's; it must have an endpoint
--   preaccess(policy, request)
--                             before authentication, once there is a backend, or
--                             with the built-in default one; may end the request
--   authenticate(policy, request) -> verdict, challenge
--                             the auth check of a route with a backend, or with
--                             the built-in default one: true, "ask", "neutral",
--                             401 or 403, see access.lua. With satisfy_any, not all
--                             are called
--   request_headers(policy, request)
--                             when the request may pass: sets headers of the
--                             request to the backend
--   before_exec(policy, request)
--                             before a jump to a profile's location, which
--                             skips checks that NGINX makes for locations by
--                             path; may end the request. Not called for GET and
--                             HEAD without a Content-Length, if no policy of the
--                             route has another phase: there is nothing to check
--   auth_response(policy, request)
--                             in variants with a check, before the header of the
--                             auth service's response, which no client gets
--   auth_passed(policy, request)
--                             in variants with a check, when the auth service has
--                             allowed the request
--   auth_refused(policy, request)
--                             when the request was denied with 401 or 403, here or by
--                             the auth service; may end the request
--   access(policy, request)   in profiles with an access phase
--   balancer(policy, request) before the first try
--   header_filter(policy, request)
--                             before the response's header is sent, in locations
--                             of a variant with a header filter, and before
--                             Headgate itself ends the request
--   error_page(policy, request)
--                             instead of a response of Headgate, and of those
--                             with a status that the route's profile catches:
--                             request.failed is the status. May end the
--                             request, or call fall_back (error_page.lua)
--   hide_client(policy, request)
--                             before a fallback backend answers for a request that
--                             was denied, here or by its backend: removes what
--                             the request says about the client
--   log(policy, request)      when the request is over, however it ended
-- Two run in TLS handshakes for a host, with the policy that it has for them and the
-- connection: { host, revision, ssl }, where ssl is the TLS library's. What a
-- function notes in it, a later one finds there, and a request of the connection in
-- request.connection. An error ends the handshake:
--
--   ssl_client_hello(policy, connection)  before a session is looked up
--   ssl_certificate(policy, connection)   later, unless a session is resumed
--
-- Two are for all requests, also of hosts and paths that no Ingress has, and get what the
-- feature has for all of them (ProcessOut.Policy):
--
--   admit(setting)            before a route is looked up: may end the request
--   response(setting, request)
--                             before the response's header is sent, and before
--                             header_filter; request is nil if there was no route, or
--                             the route has no policies that act. The process must have
--                             SeesResponses
--
-- And two are asked about policies:
--
--   applies(policy, phase, location) -> whether this policy takes part in a
--                             phase on routes that jump to that location (nil:
--                             that don't jump)
--   idle(policy, request) -> true if the policy does nothing in any phase but
--                             before_exec to any request with this request's
--                             host_name, at its revision; "https" if to none
--                             over https; called once for many requests
local cjson = require "cjson.safe"

local _M = {}

local pcall = pcall
local require = require
local string_find = string.find
local type = type

local PHASES = {
    "before_route", "find_route", "begin", "before_slash", "rewrite", "select_backend", "preaccess", "authenticate",
    "request_headers", "before_exec", "auth_response", "auth_passed", "auth_refused", "access", "balancer",
    "header_filter", "error_page", "hide_client",
    "log", "ssl_client_hello", "ssl_certificate",
}


-- module(name, further) -> the feature's module, or a further one of it, nil if
-- there is none.
function _M.module(name, further)
    if type(name) ~= "string" or not string_find(name, "^[a-z_]+$") then
        return nil
    end
    local ok, module = pcall(require, "headgate.feature." .. name .. (further and "." .. further or ""))
    return ok and module or nil
end


-- picker(name) -> the feature's picker, headgate.feature.NAME.picker, nil if there
-- is none. See headgate.picker.round_robin.
function _M.picker(name)
    return _M.module(name, "picker")
end


-- Phases by what they were made of, as long as a route has them.
local made = setmetatable({}, { __mode = "v" })


local function make(policies, location)
    local phases, idle = {}, {}
    for _, policy in ipairs(policies) do
        local module = _M.module(policy[1])
        if not module then
            return nil, "no feature " .. tostring(policy[1])
        end
        local takes_part = false
        phases.guards = phases.guards or module.guards
        for _, phase in ipairs(PHASES) do
            local run = module[phase]
            if run and (not module.applies or module.applies(policy[2], phase, location)) then
                local list = phases[phase] or {}
                phases[phase] = list
                list[#list + 1] = run
                list[#list + 1] = policy[2]
                takes_part = takes_part or phase ~= "before_exec"
            end
        end
        if takes_part and module.idle then
            idle[#idle + 1] = module.idle
            idle[#idle + 1] = policy[2]
        elseif takes_part then
            phases.acting = true
        end
    end
    phases.idle = #idle > 0 and idle or nil
    return phases
end


-- idle(phases, request) -> whether all policies are idle that can be: see the function
-- of features.
function _M.idle(phases, request)
    local result = true
    local list = phases.idle
    for i = 1, list and #list or 0, 2 do
        local one = list[i](list[i + 1], request)
        if not one then
            return false
        end
        if one == "https" then
            result = one
        end
    end
    return result
end


-- phases(policies, location) -> by phase a flat list function, policy,
-- function, policy, …, nil if there are none | nil, err
-- policies: a list of { feature, value } in the order of the feature list.
-- Equal policies give one and the same table. It has two more fields: idle, a list
-- of such functions, for the policies that may be idle; acting, whether others take
-- part in requests that don't jump.
function _M.phases(policies, location)
    local key = cjson.encode(policies)
    if not key then
        return nil, "policies that are not plain data"
    end
    key = key .. (location or "")
    if not made[key] then
        local phases, err = make(policies, location)
        if not phases then
            return nil, err
        end
        made[key] = phases
    end
    return made[key]
end


-- run calls a flat list of functions, each with its policy.
function _M.run(list, request)
    for i = 1, #list, 2 do
        list[i](list[i + 1], request)
    end
end


return _M
