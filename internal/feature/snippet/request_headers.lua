-- What snippets do to the header of a request: more_set_input_headers and
-- more_clear_input_headers change what the client sent, proxy_set_header and
-- grpc_set_header what the backend gets.
local backend_headers = require "headgate.backend_headers"
local lists = require "headgate.list"
local lookalikes = require "headgate.lookalikes"
local program = require "headgate.program"
local requests = require "headgate.request"

local _M = {}

local contains = lists.contains
local fill = program.fill
local ngx_req = ngx.req
local ngx_var = ngx.var
local pairs = pairs
local replace = backend_headers.replace
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub

-- Backends never get these as tenants write them: where a body ends would be the tenant's
-- choice, and NGINX keeps connections to backends.
local FRAMING = { ["content-length"] = true, ["transfer-encoding"] = true }

-- The headers that NGINX sets in all requests to backends, or never passes on, in lower case.
local OWN = {
    ["connection"] = true, ["content-length"] = true, ["early-data"] = true, ["expect"] = true, ["host"] = true,
    ["http2-settings"] = true, ["keep-alive"] = true, ["proxy"] = true, ["te"] = true, ["transfer-encoding"] = true,
    ["upgrade"] = true, ["x-forwarded-for"] = true, ["x-forwarded-host"] = true, ["x-forwarded-port"] = true,
    ["x-forwarded-proto"] = true, ["x-forwarded-scheme"] = true, ["x-original-forwarded-for"] = true,
    ["x-original-forwarded-host"] = true, ["x-real-ip"] = true, ["x-request-id"] = true, ["x-scheme"] = true,
}


-- media_type is that of the request's body, without parameters.
local function media_type()
    return string_match(ngx_var.content_type or "", "^[^;]*")
end


-- Headers of Headgate's own begin so.
local OWN_START = "x-headgate-"


-- clear removes a header, or those of a pattern with an asterisk at its end.
local function clear(name)
    if string_sub(name, -1) ~= "*" then
        return lookalikes.set(name, nil)
    end
    local start = string_lower(string_sub(name, 1, -2))
    for one in pairs(ngx_req.get_headers(0)) do
        if string_sub(one, 1, #start) == start and not FRAMING[one] and string_sub(one, 1, #OWN_START) ~= OWN_START then
            ngx_req.clear_header(one)
        end
    end
end


local function change(list, request)
    for i = 1, #list do
        local header = list[i]
        local name = string_lower(header.name)
        if not FRAMING[name] and (not header.types or contains(header.types, media_type()))
            and (not header.present or ngx_req.get_headers(0)[name]) then
            local value = not header.clear and fill(header.value, request) or ""
            if value == "" then
                clear(name)
            else
                lookalikes.set(header.name, value)
            end
        end
    end
end


-- input changes what the client sent. server, location: as in response_headers.lua.
function _M.input(request, server, location)
    if server and server.input_headers then
        change(server.input_headers, request)
    end
    if location and location.input_headers then
        change(location.input_headers, request)
    end
end


-- values are those of the headers of a list, "" for what is not sent. All are of the request
-- as the client sent it.
local function values_of(list, request)
    local values = {}
    for i = 1, #list do
        local value = list[i].value
        values[i] = value and fill(value, request) or ""
    end
    return values
end


-- is_sent reports whether a line may be sent. Where a body ends, and whether the connection
-- becomes another one, is not a tenant's choice: NGINX keeps connections to backends, and no
-- rule sees what is said after an upgrade. A line Upgrade may have what Headgate's own has.
local function is_sent(name, value)
    if value == "" or FRAMING[name] or name == "http2-settings" then
        return false
    end
    return name ~= "upgrade" or value == ngx_var.hg_upgrade
end


-- proxy sets the headers of proxy_set_header. As with NGINX, the client's headers of these
-- names are not sent, and those that Headgate sends by itself are sent all the same.
local function proxy(list, request)
    local values, sent = values_of(list, request), ngx_req.get_headers(0)
    local lines = {}
    for i = 1, #list do
        local name = string_lower(list[i].name)
        if not OWN[name] then
            replace(request, sent, name, nil)
        end
        if is_sent(name, values[i]) then
            lines[#lines + 1] = list[i].name
            lines[#lines + 1] = values[i]
        end
    end
    if lines[1] then
        requests.add_backend_headers(lines)
    end
end


-- grpc sets the headers of grpc_set_header. Of those that Headgate sends by itself only Host
-- can be replaced: requests by HTTP/2 have one.
local function grpc(list, request)
    local values, sent = values_of(list, request), ngx_req.get_headers(0)
    for i = 1, #list do
        local name, value = string_lower(list[i].name), values[i]
        if name == "host" and value ~= "" then
            requests.set_backend_host(value)
        elseif not OWN[name] then
            replace(request, sent, name, value ~= "" and value or nil)
        end
    end
end


-- backend sets what the backend gets. protocol: how it is asked. The locations of
-- ingress-nginx have headers of their own, so none of a server apply to them.
function _M.backend(request, location, protocol)
    if not location then
        return
    elseif protocol == "grpc" then
        if location.grpc_headers then
            grpc(location.grpc_headers, request)
        end
    elseif protocol == "http" and location.request_headers then
        proxy(location.request_headers, request)
    end
end


return _M
