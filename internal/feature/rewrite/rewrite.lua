-- Changes the path of requests to the backend.
local log = require "headgate.log"
local regex = require "headgate.regex"
local requests = require "headgate.request"
local template = require "headgate.template"

local _M = {}

local ngx_req = ngx.req

local FOUND = 302
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503


-- rewritten is the target for this request, nil if the route's path is not in
-- the request's: the expression is not bound to the start here.
local function rewritten(policy, request)
    local owner = request.route.namespace
    local groups, err, late = regex.match(request, owner, request.path, policy.pattern, "ijo")
    if err then
        if regex.may_log(owner) then
            log.err("host ", request.name.host, ": match ", policy.pattern, ": ", err)
        end
        return requests.finish(request, late and UNAVAILABLE or INTERNAL_ERROR)
    end
    local target
    if groups then
        request.groups = groups
        target = template.fill(policy.target, request)
    end
    if policy.log then
        log.notice("host ", request.name.host, ": rewrite-target: ", '"', policy.pattern,
            target and '" matches "' or '" does not match "', request.path,
            target and '", which becomes "' or "", target or "", '"')
    end
    return target
end


function _M.applies(policy, phase)
    return phase == "rewrite" or not policy.redirect
end


function _M.rewrite(policy, request)
    if not policy.redirect then
        if request.moved and not request.breaks and rewritten(policy, request) then
            -- The path that a snippet has made is one of this route: it does not move.
            request.moved = nil
        end
        return
    end
    local target = not request.breaks and rewritten(policy, request)
    if target then
        return requests.redirect(request, requests.with_query(target), FOUND)
    end
end


function _M.request_headers(policy, request)
    local target = not request.breaks and rewritten(policy, request)
    if not target then
        return
    end
    requests.set_path(target)
    if policy.prefix then
        ngx_req.set_header("X-Forwarded-Prefix", template.fill(policy.prefix, request))
    end
end


return _M
