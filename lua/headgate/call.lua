-- Calls to other services: subrequests that NGINX makes. A request may have
-- several, each with a name and a backend; model.CallName has the names. "check" is
-- that of auth_request, in locations of a variant with a check.
--
-- A subrequest has its own ngx.ctx but the variables of its request, so it finds the
-- request's table by the slot.
local balancer = require "ngx.balancer"
local log = require "headgate.log"
local replaced = require "headgate.replaced"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local units = require "headgate.units"

local _M = {}

-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local set_current_peer = balancer.set_current_peer
local set_more_tries = balancer.set_more_tries

-- The sockets of calls to this NGINX itself. Only workers can reach them: NGINX takes
-- the client's address from these calls.
local function own_socket(scheme)
    return "unix:" .. settings.run_dir .. "/tmp/own_" .. scheme .. ".sock"
end
local OWN_HTTP, OWN_HTTPS = own_socket("http"), own_socket("https")
local PAGE_HTTP, PAGE_HTTPS = replaced.socket("http"), replaced.socket("https")


-- prepare(request, name, callee) -> the call, from then on request.calls[name],
-- nil if the backend has no endpoint.
-- callee: { secure, backend | own | page, host }: an endpoint of the backend, or this
-- NGINX, for a page instead of an error if it says so.
function _M.prepare(request, name, callee)
    local call = {}
    if callee.own then
        call.own = callee.secure and OWN_HTTPS or OWN_HTTP
    elseif callee.page then
        call.own = callee.secure and PAGE_HTTPS or PAGE_HTTP
    else
        call.backend = units.with_endpoints(callee.backend, request.revision)
        if not call.backend then
            return nil
        end
    end
    if tracing and name == "check" then
        call.trace = tracing.begin_call(callee.host or request.host_name)
    end
    request.calls = request.calls or {}
    request.calls[name] = call
    return call
end


-- Names the endpoint for each try of the call of that name, the check's if there
-- is no name.
function _M.balance(name)
    local request = requests.current()
    local calls = request and request.calls
    local call = calls and calls[name or "check"]
    if not call then
        error("a call that no request has")
    end
    local address, port = call.own, nil
    if call.backend then
        address, port = call.backend:next()
        if not call.tried then
            call.tried = true
            set_more_tries(settings.tries - 1)
        end
    end
    local ok, err = set_current_peer(address, port)
    if not ok then
        log.err("set the endpoint of a request to an auth service: ", err)
    end
end


return _M
