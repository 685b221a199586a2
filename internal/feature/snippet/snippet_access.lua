-- The rules of allow and deny, and limit_except.
local client = require "headgate.client"
local log = require "headgate.log"
local program = require "headgate.program"

local _M = {}

local rules_of_method = program.rules_of_method
local string_byte = string.byte
local string_format = string.format
local string_gsub = string.gsub

local FORBIDDEN = 403
local NEUTRAL = "neutral"


local function hexadecimal(byte)
    return string_format("%02x", string_byte(byte))
end


-- matches reports whether a rule is about a client. address: in hexadecimal, nil for that of
-- a unix socket.
local function matches(rule, address)
    if rule.all then
        return true
    elseif not address then
        return rule.unix
    end
    local first = rule.first
    return first and #first == #address and address >= first and address <= rule.last
end


-- decide(rules) -> as verdict
local function decide(rules)
    local address = client.address()
    address = address and string_gsub(address, ".", hexadecimal)
    for i = 1, #rules do
        local rule = rules[i]
        if matches(rule, address) then
            return rule.allow or FORBIDDEN
        end
    end
    return NEUTRAL
end


-- rules_of are the rules of effects that are about this request, nil if there are none.
local function rules_of(effects)
    local of_method = rules_of_method(effects)
    return of_method and of_method[1] and of_method or effects.rules
end


-- verdict(server, location, listed) -> true, 403 or "neutral": see access.lua of the core.
-- server, location: the effects of the server and of the location, each nil if there are none.
-- listed: whether the location has other rules, so that those of the server do not apply.
function _M.verdict(server, location, listed)
    local rules = location and rules_of(location) or not listed and server and rules_of(server)
    return rules and decide(rules) or NEUTRAL
end


-- The rules stand behind those of the lists of the Ingress, where the first one that matches
-- decides.
function _M.authenticate(_, request)
    local state, lists = request.program, request.address_lists
    if not state or state.verdict then
        return NEUTRAL
    end
    local verdict
    if lists == "decided" then
        -- In NGINX, limit_except has rules of its own: the lists are none of them.
        local rules = state.location and rules_of_method(state.location)
        verdict = rules and decide(rules) == FORBIDDEN and FORBIDDEN or NEUTRAL
    else
        verdict = _M.verdict(state.server, state.location, lists ~= nil)
        local own = state.location and rules_of(state.location)
        if verdict == true and not own and request.route.namespace ~= state.owner then
            -- With satisfy any, the snippet of a namespace must not let clients into the paths of others.
            verdict = NEUTRAL
        end
    end
    -- A host and a route may both have this policy.
    state.verdict = verdict
    if verdict == FORBIDDEN and not request.route.satisfy_any then
        log.refusal("host ", request.name.host, ": deny in a snippet refuses the client's address")
    end
    return verdict
end


return _M
