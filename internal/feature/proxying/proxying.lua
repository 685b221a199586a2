-- Limits on bodies, timeouts and the number of tries.
--
-- NGINX compares a Content-Length with its limit before it enters a location
-- by path, but not on a jump to the location of a profile; and that has only the
-- step above the route's limit. So the exact limit is checked here.
local balancer = require "ngx.balancer"
local requests = require "headgate.request"
local settings = require "headgate.settings"

local _M = {}

local io_open = io.open
local math_min = math.min
local ngx = ngx
local ngx_var = ngx.var
local tonumber = tonumber

local TOO_LARGE = 413


-- policy: { body, at_step, timeouts = { connect, send, read }, tries }
-- tries is how many endpoints are asked at most, 0 for each one once.
function _M.applies(policy, phase, location)
    if phase == "balancer" then
        return policy.timeouts ~= nil or policy.tries ~= nil
    end
    if not policy.body then
        return false
    end
    if phase == "before_exec" then
        return true
    end
    -- Where NGINX has the exact limit, a jump is all that it misses; and what
    -- is checked on the jump need not be checked before.
    return not policy.at_step and (phase ~= "rewrite" or not location)
end


local function check_announced(policy, request)
    local length = tonumber(ngx_var.http_content_length)
    if length and length > policy.body then
        return requests.finish(request, TOO_LARGE)
    end
end


_M.rewrite = check_announced
_M.before_exec = check_announced


-- received is the length of the body that was read.
local function received()
    local data = ngx.req.get_body_data()
    if data then
        return #data
    end
    local name = ngx.req.get_body_file()
    if not name then
        return 0
    end
    local file, err = io_open(name, "rb")
    if not file then
        error("measure a body: " .. err)
    end
    local length = file:seek("end")
    file:close()
    return length
end


-- Only where the profile's step is above the limit: a body that did not
-- announce its length is read, at most up to the step, and measured.
function _M.access(policy, request)
    if ngx_var.http_content_length then
        return
    end
    ngx.req.read_body()
    if received() > policy.body then
        return requests.finish(request, TOO_LARGE)
    end
end


function _M.balancer(policy, request)
    local timeouts, tries = policy.timeouts, policy.tries
    if timeouts then
        balancer.set_timeouts(timeouts.connect, timeouts.send, timeouts.read)
    end
    if tries then
        if tries == 0 then
            tries = math_min(#request.backend.addresses, settings.max_tries)
        end
        request.max_tries = tries
    end
end


return _M
