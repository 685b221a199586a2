-- Authentication: the features' authenticate functions, and the access phase of
-- locations that have one. The access phase can only deny requests. It must not be
-- combined with NGINX's `satisfy`, for which an access phase that returns grants
-- access.
local features = require "headgate.features"
local header_filter = require "headgate.header_filter"
local replaced = require "headgate.replaced"
local requests = require "headgate.request"
local settings = require "headgate.settings"

local _M = {}

-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_header = ngx.header
local ngx_resp = ngx.resp
local pairs = pairs

local BAD_REQUEST = 400
local UNAUTHORIZED = 401
local FORBIDDEN = 403
local NOT_FOUND = 404
local UNAVAILABLE = 503

-- A verdict is true (the request passes), 401 or 403 (it is denied), or this: the
-- auth service decides, which NGINX calls in variants with a check; or this: neither (the
-- client is not on a list of denied ones, which alone lets no client in). With 401 comes a
-- WWW-Authenticate, if there is one; at most two of them are sent. A function that
-- can't decide ends the request itself; other verdicts have no effect then.
local ASK = "ask"
local NEUTRAL = "neutral"


local function run_auth_refused(request)
    local phase = request.route.phases.auth_refused
    if phase then
        features.run(phase, request)
    end
end


-- refuse ends a request. challenge, second: the WWW-Authenticate headers of a 401.
local function refuse(request, status, challenge, second)
    if second or request.route.phases.auth_refused then
        request.refusal = { status = status, challenge = challenge, second = second }
    end
    if second then
        ngx_header["WWW-Authenticate"] = second
        requests.keep(request)
        return ngx_exec("@refused")
    end
    run_auth_refused(request)
    if status == UNAUTHORIZED then
        ngx_header["WWW-Authenticate"] = challenge
    end
    return requests.finish(request, status)
end


-- authenticate runs the auth checks of a route, and ends the request unless it passes
-- all of them, or one of them on a route with satisfy_any. A 401 takes precedence over
-- a 403, since it says how the client can authenticate.
function _M.authenticate(list, request)
    local route = request.route
    local any = route.satisfy_any
    local ask = false
    local status, challenge, second
    for i = 1, #list, 2 do
        local verdict, wants = list[i](list[i + 1], request)
        if verdict == true then
            if any then
                request.passed = route.identity ~= nil
                return
            end
        elseif verdict == ASK and route.identity then
            ask = true
        elseif verdict == UNAUTHORIZED or verdict == FORBIDDEN then
            if not any then
                return refuse(request, verdict, wants)
            end
            status = status == UNAUTHORIZED and status or verdict
            if verdict == UNAUTHORIZED and wants then
                if challenge then
                    second = second or wants
                else
                    challenge = wants
                end
            end
        elseif verdict ~= NEUTRAL then
            error("invalid verdict: " .. tostring(verdict))
        end
    end
    if ask then
        request.refusal = status and { status = status, challenge = challenge }
    elseif status then
        return refuse(request, status, challenge, second)
    end
end


-- Runs in the access phase. If the auth service was called, it has allowed the
-- request. reads_body: whether the profile lets policies read the body. goes_on: whether
-- the backend is asked in the location without a check.
function _M.run(reads_body, goes_on)
    local request = requests.current()
    if not request then
        return ngx_exit(UNAVAILABLE)
    end
    if tracing then
        tracing.resume()
    end
    local phases = request.route.phases
    if phases.auth_passed then
        features.run(phases.auth_passed, request)
    end
    if not request.backend then
        return requests.finish(request, request.unanswered or NOT_FOUND)
    end
    if goes_on then
        request.passed = true
        return ngx_exec(request.route.passed)
    end
    if reads_body and phases.access then
        features.run(phases.access, request)
    end
end


-- Runs in the header filter of the auth service's response, which never reaches the
-- client.
function _M.auth_response()
    local request = requests.current()
    local calls = request and request.calls
    if tracing and calls and calls.check and calls.check.trace then
        tracing.end_call(calls.check.trace, ngx.status)
    end
    local phase = calls and calls.check and request.route.phases.auth_response
    if phase then
        features.run(phase, request)
    end
    local refusal = request and request.refusal
    if refusal and refusal.status == UNAUTHORIZED and ngx.status == FORBIDDEN then
        -- As with NGINX's satisfy: the client can still authenticate.
        ngx.status = UNAUTHORIZED
    end
end


-- Answers in @refused, with the WWW-Authenticate that NGINX or refuse has set, and
-- with those of other features.
function _M.refused()
    local request = requests.current()
    if not request then
        return ngx_exit(UNAVAILABLE)
    end
    run_auth_refused(request)
    local refusal = request.refusal
    if refusal and refusal.challenge then
        requests.set_challenge(refusal.challenge)
    end
    local forbids = request.forbids and not (refusal and refusal.status == UNAUTHORIZED)
    return requests.finish(request, forbids and FORBIDDEN or UNAUTHORIZED)
end


-- The header filter of the auth service's response to a client that was refused. A response that
-- allows comes too late: nothing of it is for the client, who gets the refusal alone.
function _M.answered()
    local request = requests.current()
    local status = ngx.status
    local call = request and request.calls and request.calls.check
    if tracing and call and call.trace then
        tracing.end_call(call.trace, status)
    end
    if status < BAD_REQUEST then
        for name in pairs(ngx_resp.get_headers(0)) do
            ngx_header[name] = nil
        end
        ngx_header["Content-Length"] = nil
        ngx.status = request and request.answers or FORBIDDEN
        ngx.ctx.without_body = true
    elseif status == FORBIDDEN and request and request.answers == UNAUTHORIZED then
        -- As with NGINX's satisfy: the client can still authenticate.
        ngx.status = UNAUTHORIZED
    end
    replaced.mark()
    return header_filter.run()
end


-- The body filter of such a response.
function _M.answered_body()
    if ngx.ctx.without_body then
        ngx.arg[1] = nil
    end
end


return _M
