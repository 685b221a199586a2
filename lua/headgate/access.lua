-- Who may pass: what the features' authenticate functions return before a
-- request goes on, and the access phase, which only locations have that need it.
-- That can refuse a request but lets none in: nothing here may be combined with
-- NGINX's `satisfy`, under which an access phase that merely returns grants
-- access.
local features = require "headgate.features"
local requests = require "headgate.request"

local _M = {}

local error = error
local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_header = ngx.header
local tostring = tostring

local UNAUTHORIZED = 401
local FORBIDDEN = 403
local NOT_FOUND = 404
local UNAVAILABLE = 503

-- A verdict is true, with which a request passes, a status, 401 or 403, that
-- refuses it, or this: the auth service decides, which NGINX asks in modes with a
-- check. With 401 comes a WWW-Authenticate, if there is one; two of all are sent.
-- A function that can't decide ends the request itself, and no other verdict
-- counts any more.
local ASK = "ask"


local function run_auth_refused(request)
    local phase = request.route.phases.auth_refused
    if phase then
        features.run(phase, request)
    end
end


-- refuse ends a request. challenge, second: what a 401 asks for.
local function refuse(request, status, challenge, second)
    if status == UNAUTHORIZED then
        if second then
            ngx_header["WWW-Authenticate"] = second
            request.refusal = { status = status, challenge = challenge }
            requests.keep(request)
            return ngx_exec("@refused")
        end
        run_auth_refused(request)
        ngx_header["WWW-Authenticate"] = challenge
    end
    return requests.finish(request, status)
end


-- authenticate runs a list of functions, and ends the request unless all let it
-- pass, or, on a route where one is enough, one of them. A 401 says more than a
-- 403: with it the client learns what would let it in.
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
        else
            error("invalid verdict: " .. tostring(verdict))
        end
    end
    if ask then
        request.refusal = status and { status = status, challenge = challenge }
    elseif status then
        return refuse(request, status, challenge, second)
    end
end


-- Where another service was asked, NGINX comes here only when that let the
-- request pass. reads_body: whether the profile lets policies read the body.
function _M.run(reads_body)
    local request = requests.current()
    if not request then
        return ngx_exit(UNAVAILABLE)
    end
    local phases = request.route.phases
    if phases.auth_passed then
        features.run(phases.auth_passed, request)
    end
    if not request.backend then
        return requests.finish(request, NOT_FOUND)
    end
    if reads_body and phases.access then
        features.run(phases.access, request)
    end
end


-- Runs before the header of the auth service's answer, which never reaches the
-- client, would be sent.
function _M.auth_response()
    local request = requests.current()
    local calls = request and request.calls
    local phase = calls and calls.check and request.route.phases.auth_response
    if phase then
        features.run(phase, request)
    end
    local refusal = request and request.refusal
    if refusal and refusal.status == UNAUTHORIZED and ngx.status == FORBIDDEN then
        -- As under NGINX's satisfy: a client that can still authenticate is asked
        -- to.
        ngx.status = UNAUTHORIZED
    end
end


-- Answers in @refused, with what NGINX or refuse put into WWW-Authenticate, and
-- what other features want besides.
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
    return requests.finish(request, UNAUTHORIZED)
end


return _M
