-- Adds CORS headers, and answers preflight requests.
local client = require "headgate.client"
local requests = require "headgate.request"

local _M = {}

local ngx_header = ngx.header
local ngx_var = ngx.var
local string_find = string.find
local string_lower = string.lower
local string_sub = string.sub
local table_concat = table.concat
local type = type

-- The longest list that is sent back, in bytes.
local MAX_REFLECTED = 4000
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


-- vary says that answers depend on a header of requests, unless the backend has said so. Pattern
-- finds the name in a list.
local function vary(name, pattern)
    local now = ngx_header["Vary"]
    if type(now) == "table" then
        now = table_concat(now, ", ")
    end
    if not now or now == "" then
        ngx_header["Vary"] = name
    elseif not string_find("," .. string_lower(now) .. ",", pattern) and not string_find(now, "*", 1, true) then
        ngx_header["Vary"] = now .. ", " .. name
    end
end


-- reflect answers a preflight request with what it asks for, if that is a list of names.
local function reflect(variable, name, pattern, answers)
    local asked = client.header(variable)
    if asked and #asked <= MAX_REFLECTED and string_find(asked, "^[%w_, -]+$") then
        ngx_header[answers] = asked
        vary(name, pattern)
    end
end


function _M.header_filter(policy)
    if not policy.any then
        vary("Origin", "[, ]origin[, ]")
    end
    local origin = allowed(policy)
    if not origin then
        return
    end
    ngx_header["Access-Control-Allow-Origin"] = origin
    local headers = policy.headers
    for i = 1, #headers do
        ngx_header[headers[i][1]] = headers[i][2]
    end
    if policy.reflect_methods then
        reflect("access_control_request_method", "Access-Control-Request-Method",
            "[, ]access%-control%-request%-method[, ]", "Access-Control-Allow-Methods")
    end
    if policy.reflect_headers then
        reflect("access_control_request_headers", "Access-Control-Request-Headers",
            "[, ]access%-control%-request%-headers[, ]", "Access-Control-Allow-Headers")
    end
end


return _M
