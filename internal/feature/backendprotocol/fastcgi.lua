-- Parameters of FastCGI backends, from variables and headers.
local requests = require "headgate.request"
local settings = require "headgate.settings"
local template = require "headgate.template"
local lookalikes = require "headgate.lookalikes"

local _M = {}

local fill = template.fill
local ngx_req = ngx.req
local ngx_var = ngx.var
local string_byte = string.byte

local SLASH = 47
local UNAVAILABLE = 503

-- Variables that templates of other features don't have, and the path as the backend gets it,
-- which may be rewritten.
local OWN = {
    fastcgi_script_name = function(_, index)
        local path = ngx_var.uri
        if index and string_byte(path, -1) == SLASH then
            return path .. index
        end
        return path
    end,
    uri = function() return ngx_var.uri end,
    document_uri = function() return ngx_var.uri end,
    https = function() return ngx_var.https end,
    server_name = function(request) return request.host_name end,
    server_protocol = function() return ngx_var.server_protocol end,
    server_addr = function() return ngx_var.server_addr end,
    content_type = function() return ngx_var.content_type end,
    content_length = function() return ngx_var.content_length end,
    remote_port = function() return ngx_var.remote_port end,
}

-- What is set for parameters: its tables are used again, since nothing waits in between.
local values_of = setmetatable({}, { __mode = "k" })


-- set(parameters, request)
function _M.set(parameters, request)
    local headers = parameters.headers
    if headers then
        for i = 1, #headers do
            -- An empty value removes the header.
            lookalikes.set(headers[i].name, fill(headers[i].value, request, OWN))
        end
    end
    if parameters.host then
        requests.set_backend_host(fill(parameters.host, request, OWN))
    end
    local variables = parameters.variables
    if not variables then
        return
    end
    local values = values_of[parameters]
    if not values then
        values = {}
        values_of[parameters] = values
    end
    local declared = settings.variables
    for i = 1, #variables do
        local name = variables[i].name
        if not declared[name] then
            -- The administrator allowed it after this worker's start.
            return requests.finish(request, UNAVAILABLE)
        end
        values[name] = fill(variables[i].value, request, OWN)
    end
    requests.set_variables(values)
end


-- clear removes the headers that set has set: no other service gets them.
function _M.clear(parameters)
    for _, header in ipairs(parameters.headers) do
        ngx_req.clear_header(header.name)
    end
end


return _M
