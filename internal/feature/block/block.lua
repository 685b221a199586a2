-- Refuses requests before they are routed.
local client = require "headgate.client"
local log = require "headgate.log"
local networks = require "headgate.networks"

local _M = {}

local ngx_decode_base64 = ngx.decode_base64
local ngx_exit = ngx.exit
local ngx_re_find = ngx.re.find
local string_lower = string.lower

local FORBIDDEN = 403


-- matches reports whether a list has a value. Clients choose the value: one with which an
-- expression takes too long is refused.
local function matches(list, value)
    if list.whole[string_lower(value)] then
        return true
    end
    for i = 1, #list.patterns do
        local p = list.patterns[i]
        local from, _, err = ngx_re_find(value, p.pattern, p.caseless and "ijo" or "jo")
        if err then
            log.err("match ", p.pattern, ": ", err)
        end
        if from or err then
            return true
        end
    end
    return false
end


-- is_blocked(setting, address) decides by the list of networks. One who has no address is
-- on it.
local function is_blocked(setting, address)
    local list = setting.decoded
    if not list then
        list = ngx_decode_base64(setting.networks)
        setting.decoded = list
    end
    return not address or networks.has(list, address)
end


-- setting: { networks, user_agents, referers }
function _M.admit(setting)
    if setting.networks and is_blocked(setting, client.address())
        or setting.user_agents and matches(setting.user_agents, client.header("user_agent") or "")
        or setting.referers and matches(setting.referers, client.header("referer") or "") then
        return ngx_exit(FORBIDDEN)
    end
end


return _M
