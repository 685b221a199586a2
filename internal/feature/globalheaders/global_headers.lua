-- Sets headers of all requests to backends, and of all responses.
local client = require "headgate.client"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local template = require "headgate.template"
local lookalikes = require "headgate.lookalikes"

local _M = {}

local ngx_header = ngx.header
local ngx_var = ngx.var

local UNAVAILABLE = 503

-- The variables of NGINX that values can have besides those of all templates: of requests
-- and of responses, see headers.go.
local OWN = {
    hostname = function() return ngx_var.hostname end,
    msec = function() return ngx_var.msec end,
    proxy_add_x_forwarded_for = function() return client.added_forwarded_for() end,
    proxy_protocol_addr = function() return ngx_var.proxy_protocol_addr end,
    realip_remote_addr = function() return ngx_var.realip_remote_addr end,
    remote_port = function() return ngx_var.remote_port end,
    request_time = function() return ngx_var.request_time end,
    server_protocol = function() return ngx_var.server_protocol end,
    ssl_cipher = function() return ngx_var.ssl_cipher end,
    ssl_protocol = function() return ngx_var.ssl_protocol end,
    ssl_server_name = function() return ngx_var.ssl_server_name end,
    time_iso8601 = function() return ngx_var.time_iso8601 end,
    upstream_addr = function() return ngx_var.upstream_addr end,
    upstream_response_time = function() return ngx_var.upstream_response_time end,
    upstream_status = function() return ngx_var.upstream_status end,
}

-- The values of a request's headers, until they are set.
local values = {}


-- fill -> the value of a header, nil if it is empty.
local function fill(text, request)
    local value = template.fill(text, request, OWN)
    return value ~= "" and value or nil
end


local function setting_of(request)
    return request.globals.settings.global_headers
end


-- Nothing is asked while it is not known what backends must get.
function _M.rewrite(_, request)
    local setting = setting_of(request)
    if setting and setting.denied then
        return requests.finish(request, UNAVAILABLE)
    end
end


-- set_variables does so for the headers that nginx.conf sets. A worker of an earlier
-- nginx.conf may not have them.
local function set_variables(list, request)
    local filled = {}
    for i = 1, #list do
        local name = list[i][1]
        if settings.variables[name] then
            filled[name] = fill(list[i][2], request) or ""
        end
    end
    requests.set_variables(filled)
end


-- All values are of the request as the client sent it.
function _M.request_headers(_, request)
    local setting = setting_of(request)
    if not setting then
        return
    end
    local list = setting.requests
    local count = list and #list or 0
    for i = 1, count do
        values[i] = fill(list[i][2], request)
    end
    if setting.variables then
        set_variables(setting.variables, request)
    end
    for i = 1, count do
        lookalikes.set(list[i][1], values[i])
    end
    request.has_global_headers = true
end


-- A fallback backend gets them as well if the request was denied before.
function _M.hide_client(policy, request)
    if not request.has_global_headers then
        return _M.request_headers(policy, request)
    end
end


-- bare is a request without a route.
local function bare()
    return { host_name = ngx_var.host, path = ngx_var.uri, route = {} }
end


-- setting: { responses, hsts }; responses is a list of { name, template }.
function _M.response(setting, request)
    request = request or bare()
    local list = setting.responses
    for i = 1, list and #list or 0 do
        ngx_header[list[i][1]] = fill(list[i][2], request)
    end
    -- The variable is there while NGINX itself writes the header.
    if setting.hsts and not ngx_var.hg_hsts then
        ngx_header["Strict-Transport-Security"] = fill(setting.hsts, request)
    end
end


return _M
