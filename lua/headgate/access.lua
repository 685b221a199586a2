-- Who may pass: what judges say before a request goes on, and the access phase,
-- which only locations have that need it. That can refuse a request but lets
-- none in: nothing here may be combined with NGINX's `satisfy`, under which an
-- access phase that merely returns grants access.
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

-- What a judge says besides true, with which a request passes, and a status,
-- 401 or 403, with which it refuses one: it is for the service to say that
-- NGINX asks, which it does in modes with a check. With 401 comes a
-- WWW-Authenticate, if there is one; two of all judges' are told. A judge that
-- can't tell ends the request itself: that is no verdict, and no other judge's
-- counts any more.
local ASK = "ask"


local function run_refused(request)
    local refused = request.route.phases.refused
    if refused then
        features.run(refused, request)
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
        run_refused(request)
        ngx_header["WWW-Authenticate"] = challenge
    end
    return requests.finish(request, status)
end


-- judge asks a list of judges, and ends the request unless all let it pass, or,
-- on a route where one is enough, one of them. A 401 says more than a 403: with
-- it the client learns what would let it in.
function _M.judge(list, request)
    local route = request.route
    local any = route.any_judge
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
            error("a judge that says " .. tostring(verdict))
        end
    end
    if ask then
        request.refusal = status and { status = status, challenge = challenge }
    elseif status then
        return refuse(request, status, challenge, second)
    end
end


-- checked runs what is to be done when another service let the request pass.
-- It ends a request that no backend answers.
local function checked(request)
    local phase = request.route.phases.checked
    if phase then
        features.run(phase, request)
    end
    if not request.backend then
        return requests.finish(request, NOT_FOUND)
    end
end


-- Where another service was asked, NGINX comes here only when that let the
-- request pass. reads_body: whether the profile lets policies read the body.
function _M.run(reads_body)
    local request = requests.current()
    if not request then
        return ngx_exit(UNAVAILABLE)
    end
    checked(request)
    local access = request.route.phases.access
    if reads_body and access then
        features.run(access, request)
    end
end


-- Answers in @refused, with what NGINX or refuse put into WWW-Authenticate, and
-- what judges want besides.
function _M.refused()
    local request = requests.current()
    if not request then
        return ngx_exit(UNAVAILABLE)
    end
    run_refused(request)
    local refusal = request.refusal
    if refusal and refusal.challenge then
        requests.set_challenge(refusal.challenge)
    end
    return requests.finish(request, UNAUTHORIZED)
end


return _M
