-- The features' Lua modules. A module may have these functions, each of which
-- gets the policy that the route carries and the request (see request.lua):
--
--   route(policy, request)    before a backend is chosen; may end the request
--   choose(policy, request)   may set request.backend to another backend than
--                             the route's; it must have an endpoint
--   guard(policy, request)    when there is a backend to ask, or the built-in
--                             default one answers: may end the request; never
--                             lets in what another refuses
--   judge(policy, request) -> verdict, challenge
--                             behind all guards: whether the request's sender
--                             may pass: true, "ask", or 401 or 403, see
--                             access.lua. Where one is enough, not all are
--                             called
--   send(policy, request)     when guards and judges let the request pass: says
--                             what the backend is asked
--   jump(policy, request)     before a jump to a profile's location, which
--                             skips what NGINX checks on the way into one by
--                             path; may end the request
--   called(policy, request)   in modes with a check, before the header of the
--                             called service's answer is sent to nobody
--   checked(policy, request)  in modes with a check, when the called service let
--                             the request pass; also elsewhere, see access.lua
--   refused(policy, request)  when judges or the called service refused the
--                             request with 401; may end the request
--   access(policy, request)   in profiles with an access phase
--   balance(policy, request)  before the first endpoint is asked
--   answer(policy, request)   before the answer's header is sent, in profiles'
--                             locations of a mode with answers, and before
--                             Headgate itself ends the request
--   done(policy, request)     when the request is over, however it ended, on
--                             routes whose mode has answers
--   applies(policy, phase, location) -> whether this policy takes part in a
--                             phase on routes that jump to that location (nil:
--                             that don't jump); asked when a unit is decoded
local cjson = require "cjson.safe"

local _M = {}

local pcall = pcall
local require = require
local string_find = string.find
local type = type

local PHASES = {
    "route", "choose", "guard", "judge", "send", "jump", "called", "checked", "refused", "access", "balance", "answer",
    "done",
}


-- module(name) -> the feature's module, nil if there is none.
function _M.module(name)
    if type(name) ~= "string" or not string_find(name, "^[a-z_]+$") then
        return nil
    end
    local ok, module = pcall(require, "headgate.feature." .. name)
    return ok and module or nil
end


-- Phases by what they were made of, as long as a route has them.
local made = setmetatable({}, { __mode = "v" })


local function make(policies, location)
    local phases = {}
    for _, policy in ipairs(policies) do
        local module = _M.module(policy[1])
        if not module then
            return nil, "no feature " .. tostring(policy[1])
        end
        for _, phase in ipairs(PHASES) do
            local run = module[phase]
            if run and (not module.applies or module.applies(policy[2], phase, location)) then
                local list = phases[phase] or {}
                phases[phase] = list
                list[#list + 1] = run
                list[#list + 1] = policy[2]
            end
        end
    end
    if phases.judge then
        -- Routes without guards need not be looked at for judges.
        phases.guard = phases.guard or {}
    end
    return phases
end


-- phases(policies, location) -> by phase a flat list function, policy,
-- function, policy, …, nil where nothing is to run | nil, err
-- policies: a list of { feature, value } in the order of the feature list.
-- Equal policies give one and the same table.
function _M.phases(policies, location)
    local key = cjson.encode(policies)
    if not key then
        return nil, "policies that are no plain data"
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
