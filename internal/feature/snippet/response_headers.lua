-- What snippets do to the header of a response: proxy_hide_header, proxy_pass_header,
-- more_set_headers, more_clear_headers, expires and add_header, in NGINX's order.
local expires = require "headgate.feature.snippet_effects.expires"
local lists = require "headgate.list"
local program = require "headgate.program"
local response = require "ngx.resp"
local settings = require "headgate.settings"

local _M = {}

local add_header = response.add_header
local contains = lists.contains
local fill = program.fill
local ngx = ngx
local ngx_header = ngx.header
local ngx_var = ngx.var
local pairs = pairs
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub

-- add_header adds to responses of other statuses only with `always`, and expires never.
local SAFE = {
    [200] = true, [201] = true, [204] = true, [206] = true,
    [301] = true, [302] = true, [303] = true, [304] = true, [307] = true, [308] = true,
}

-- The headers of backends that NGINX hides. The variables are spelled out: none is read by
-- a name from a unit.
local HIDDEN = {
    ["date"] = function() return ngx_var.upstream_http_date end,
    ["x-pad"] = function() return ngx_var.upstream_http_x_pad end,
    ["x-accel-buffering"] = function() return ngx_var.upstream_http_x_accel_buffering end,
    ["x-accel-charset"] = function() return ngx_var.upstream_http_x_accel_charset end,
    ["x-accel-expires"] = function() return ngx_var.upstream_http_x_accel_expires end,
    ["x-accel-limit-rate"] = function() return ngx_var.upstream_http_x_accel_limit_rate end,
    ["x-accel-redirect"] = function() return ngx_var.upstream_http_x_accel_redirect end,
}

-- While server-tokens is false, ingress-nginx removes this header, also if a snippet passes it.
if settings.server_tokens then
    HIDDEN["server"] = function() return ngx_var.upstream_http_server end
end

-- NGINX makes these itself: a pattern of names does not mean them, and a backend's length
-- can't be hidden.
local MADE = {
    ["connection"] = true, ["content-length"] = true, ["content-type"] = true, ["date"] = true,
    ["server"] = true, ["transfer-encoding"] = true,
}


local function hide(names)
    for i = 1, #names do
        if names[i] ~= "content-length" then
            ngx_header[names[i]] = nil
        end
    end
end


local function pass(names)
    for i = 1, #names do
        local read = HIDDEN[names[i]]
        local value = read and read()
        if value then
            ngx_header[names[i]] = value
        end
    end
end


-- clear removes a header, or those of a pattern with an asterisk at its end.
local function clear(name)
    if string_sub(name, -1) ~= "*" then
        ngx_header[name] = nil
        return
    end
    local start = string_lower(string_sub(name, 1, -2))
    for one in pairs(ngx.resp.get_headers(0)) do
        if not MADE[one] and string_sub(one, 1, #start) == start then
            ngx_header[one] = nil
        end
    end
end


-- media_type is that of the response, without parameters.
local function media_type()
    local value = ngx_header["Content-Type"]
    return type(value) == "string" and string_match(value, "^[^;]*") or ""
end


local function set_more(list, request, status)
    for i = 1, #list do
        local header = list[i]
        if (not header.statuses or contains(header.statuses, status))
            and (not header.types or contains(header.types, media_type())) then
            local value = not header.clear and fill(header.value, request) or ""
            if value == "" then
                clear(header.name)
            elseif header.append then
                add_header(header.name, value)
            else
                ngx_header[header.name] = value
            end
        end
    end
end


-- Headers of which NGINX has one: add_header replaces it, or removes it with an empty value.
local SINGLE = { ["last-modified"] = true, ["etag"] = true }


local function add(list, request, status)
    local safe = SAFE[status]
    for i = 1, #list do
        local header = list[i]
        if safe or header.always then
            local value = header.value and fill(header.value, request) or ""
            if SINGLE[string_lower(header.name)] then
                ngx_header[header.name] = value ~= "" and value or nil
            elseif value ~= "" then
                add_header(header.name, value)
            end
        end
    end
end


-- apply(request, server, location, status, backend) does so for a response of that status.
-- server, location: the effects of the server and of the location, each nil if there are none.
-- backend: whether a backend speaks HTTP, and was asked: only its headers are hidden.
function _M.apply(request, server, location, status, backend)
    local own, outer = location or server, location and server or nil
    if backend then
        local hidden = own.hide_headers or outer and outer.hide_headers
        if hidden then
            hide(hidden)
        end
        local passed = own.pass_headers or outer and outer.pass_headers
        if passed then
            pass(passed)
        end
    end
    if outer and outer.response_headers then
        set_more(outer.response_headers, request, status)
    end
    if own.response_headers then
        set_more(own.response_headers, request, status)
    end
    local expiry = own.expires or outer and outer.expires
    if expiry and SAFE[status] then
        expires.set(expiry, request)
    end
    local added = own.add_headers or outer and outer.add_headers
    if added then
        add(added, request, status)
    end
end


return _M
