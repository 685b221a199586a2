-- What NGINX's variables say about the tries of a request.
local balancer = require "ngx.balancer"

local _M = {}

local get_last_failure = balancer.get_last_failure
local ngx_var = ngx.var
local string_gmatch = string.gmatch
local string_match = string.match
local tonumber = tonumber

-- In seconds.
local LONG = 0.5

-- NGINX's statuses for a try without a response.
local FAILED, TIMED_OUT = 502, 504


-- values(list) returns an iterator over the values of a variable for each try, nil for "-".
function _M.values(list)
    local next_one = string_gmatch(list or "", "[%d.-]+")
    return function()
        local text = next_one()
        return text and tonumber(text)
    end
end


-- last(list) -> the value of a variable for the last try that has ended, nil for "-". NGINX
-- writes " : " behind it, and nothing for the try that begins.
local function last(list)
    return tonumber(string_match(list or "", "([%d.-]+)[ :]*$"))
end


-- to_connect() -> whether the last try ended before a connection was made, or may have; whether
-- that took long; how long, in seconds
-- To be called in the balancer, before the next try.
--
-- An endpoint elsewhere that refuses a connection, or can't be reached, looks to NGINX as if it
-- was connected to. But no byte was sent then. A kept connection that was closed may look the
-- same, except that this takes no time.
function _M.to_connect()
    local _, status = get_last_failure()
    local took = last(ngx_var.upstream_response_time) or 0
    if status == TIMED_OUT then
        local unconnected = not last(ngx_var.upstream_connect_time)
        return unconnected, unconnected, took
    end
    return status == FAILED and last(ngx_var.upstream_bytes_sent) == 0, took >= LONG, took
end


return _M
