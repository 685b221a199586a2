-- Redirects from http to https. NGINX itself writes the HSTS header.
local client = require "headgate.client"
local names = require "headgate.names"
local requests = require "headgate.request"
local settings = require "headgate.settings"

local _M = {}

local ngx_var = ngx.var
local string_byte = string.byte
local string_gsub = string.gsub
local string_sub = string.sub

local SLASH = 47


function _M.idle(policy, request)
    if policy.always or names.with_tls(request.name, request.host_name, request.revision) then
        return "https"
    end
    return true
end


-- policy: { always, keep_slash, port }
function _M.rewrite(policy, request)
    if not policy.always and not names.with_tls(request.name, request.host_name, request.revision) then
        return
    end
    -- A request that moves is asked for https by the route that it gets to.
    if request.moved or client.scheme() ~= "http" then
        return
    end
    local everywhere = request.globals.settings.https_redirect
    local uri = ngx_var.request_uri
    if not policy.keep_slash and string_byte(uri, #uri) == SLASH then
        uri = string_sub(uri, 1, -2)
    end
    local asked = client.asked()
    local host = asked and string_gsub(asked, ":%d+$", "") or request.host_name
    local port = policy.port and ":" .. settings.https_port or ""
    return requests.redirect(request, "https://" .. host .. port .. uri, everywhere.code)
end


return _M
