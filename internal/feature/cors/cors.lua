-- Adds CORS headers, and answers preflight requests.
local client = require "headgate.client"
local requests = require "headgate.request"

local _M = {}

local ngx_header = ngx.header
local ngx_var = ngx.var
local string_find = string.find
local string_lower = string.lower
local string_sub = string.sub

local NO_CONTENT = 204


-- Whether an origin in lower case has one label between scheme and rest.
local function is_below(origin, scheme, rest)
    local label_end = #origin - #rest
    return label_end > #scheme
        and string_sub(origin, 1, #scheme) == scheme
        and string_sub(origin, label_end + 1) == rest
        and not string_find(string_sub(origin, #scheme + 1, label_end), "[^a-z0-9-]")
end


-- allowed returns the value of Access-Control-Allow-Origin, nil for an origin that is
-- not allowed.
local function allowed(policy)
    if policy.any then
        return "*"
    end
    local origin = client.header("origin")
    if not origin then
        return nil
    end
    local lower = string_lower(origin)
    if policy.exact and policy.exact[lower] then
        return origin
    end
    local below = policy.below
    if below then
        for i = 1, #below do
            if is_below(lower, below[i].scheme, below[i].rest) then
                return origin
            end
        end
    end
end


-- policy: { any, exact, below, headers }, see cors.go
function _M.rewrite(policy, request)
    if ngx_var.request_method == "OPTIONS" and allowed(policy) then
        return requests.finish(request, NO_CONTENT)
    end
end


function _M.header_filter(policy)
    local origin = allowed(policy)
    if not origin then
        return
    end
    ngx_header["Access-Control-Allow-Origin"] = origin
    local headers = policy.headers
    for i = 1, #headers do
        ngx_header[headers[i][1]] = headers[i][2]
    end
end


return _M
