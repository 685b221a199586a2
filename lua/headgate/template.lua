-- Texts with variables that tenants wrote: internal/syntax/template/template.go parses them,
-- and this module fills them in for a request.
--
-- No variable of NGINX is read by a name from a unit: each kind of piece has a function
-- of its own. The result is not escaped: the caller must do it.
local client = require "headgate.client"
local geo = require "headgate.geo"
local regex = require "headgate.regex"
local requests = require "headgate.request"

local _M = {}

local ngx = ngx
local ngx_var = ngx.var
local error = error
local ngx_escape_uri = ngx.escape_uri
local pairs = pairs
local string_byte = string.byte
local string_format = string.format
local string_gsub = string.gsub
local string_lower = string.lower
local string_match = string.match
local table_concat = table.concat
local tonumber = tonumber
local tostring = tostring
local type = type

local NONE = {}


local function backend_part(pattern)
    return function(request)
        return string_match(request.route.backend or "", pattern)
    end
end


local function request_uri(request)
    return request.ambiguous_path and requests.target(request) or ngx_var.request_uri
end


-- groups are the groups of the route's path. Without them, the text could allow more
-- than its author meant: if the expression exceeds the match limit, the request ends
-- with 500.
local function groups_of(request)
    local groups = request.groups
    if not groups then
        local pattern = request.route.pattern
        local err
        if pattern then
            groups, err = regex.match(request, request.route.namespace, request.path, pattern, "ijo")
            if err then
                error("match " .. pattern .. ": " .. err)
            end
        end
        groups = groups or NONE
        request.groups = groups
    end
    return groups
end


local PIECES = {
    args = function() return ngx_var.args end,
    query_string = function() return ngx_var.args end,
    is_args = function() return ngx_var.is_args end,
    best_http_host = function(request) return client.asked() or requests.authority(request) end,
    http_host = requests.authority,
    escaped_request_uri = function(request) return ngx_escape_uri(request_uri(request)) end,
    host = function(request) return request.host_name end,
    ingress_name = function(request) return request.route.ingress end,
    namespace = function(request) return request.route.namespace end,
    location_path = function(request) return request.route.path end,
    pass_access_scheme = client.scheme,
    scheme = function() return ngx_var.scheme end,
    pass_port = function() return ngx_var.hg_port end,
    pass_server_port = function() return ngx_var.hg_port end,
    server_port = function() return ngx_var.server_port end,
    remote_addr = function() return ngx_var.remote_addr end,
    remote_user = function() return ngx_var.remote_user end,
    the_real_ip = function() return ngx_var.remote_addr end,
    req_id = function() return ngx_var.req_id end,
    request_id = function() return ngx_var.req_id end,
    request_method = function() return ngx_var.request_method end,
    request_uri = request_uri,
    service_name = backend_part("^[^/]*/([^/]*)/"),
    service_port = backend_part("^[^/]*/[^/]*/(.*)$"),
    uri = function(request) return request.path end,
    arg = function(_, name) return client.argument(name) end,
    cookie = function(_, name) return client.cookie(name) end,
    http = function(_, name) return client.header(string_lower(name)) end,
    group = function(request, name)
        local groups = groups_of(request)
        return groups[name] or groups[tonumber(name)]
    end,
}


for name, of in pairs(geo) do
    PIECES[name] = of
end


-- reader(name) -> the function for a variable without a name behind it, nil if there is none
function _M.reader(name)
    return PIECES[name]
end


_M.groups = groups_of


local function percent(c)
    return string_format("%%%02X", string_byte(c))
end


-- Parts of a client's URI stay as they are, as far as they are valid in a URI.
local function encoded(text)
    return (string_gsub(text, "[^%w%-._~:/?%[%]@!$&'()*+,;=%%]", percent))
end


local function authority(text)
    return (string_gsub(text, "[^%w%-._:%[%]]", percent))
end


local function path(text)
    return ngx_escape_uri(text, 0)
end


-- How variables are written into a URI. All others are written so that none of
-- their bytes ends the part of the URI that they stand in.
local IN_URI = {
    arg = encoded,
    args = encoded,
    best_http_host = authority,
    escaped_request_uri = encoded,
    -- Slashes stay.
    group = function(text) return (string_gsub(ngx_escape_uri(text), "%%2F", "/")) end,
    host = authority,
    http_host = authority,
    is_args = encoded,
    location_path = path,
    query_string = encoded,
    request_uri = encoded,
    uri = path,
}


-- join puts the pieces of a template together. write(text, kind): what becomes of the
-- value of a variable, which is empty if it has none or is not known. own: functions of
-- further variables, or nil. most: the length that the text may have, nil for any: a longer
-- one is an error.
local function join(template, request, write, own, most)
    local first = template[1]
    if type(first) == "string" and template[2] == nil then
        return first
    end
    local texts, length = {}, 0
    for i = 1, #template do
        local piece = template[i]
        if type(piece) ~= "string" then
            local kind = piece[1]
            local read = own and own[kind] or PIECES[kind]
            piece = tostring(write(read and read(request, piece[2]) or "", kind))
        end
        texts[i] = piece
        length = length + #piece
        if most and length > most then
            error("a text with variables is longer than " .. most .. " bytes", 0)
        end
    end
    return table_concat(texts)
end


local function as_it_is(text)
    return text
end


local function with_length(text)
    return #text .. ":" .. text
end


local function in_uri(text, kind)
    return (IN_URI[kind] or ngx_escape_uri)(text)
end


-- fill(template, request, own) -> the text. own: by name a function of the request and the
-- name behind the variable, for variables that are the feature's or otherwise than usual;
-- or nil. most: the length that the text may have, or nil; a longer one is an error.
function _M.fill(template, request, own, most)
    return join(template, request, as_it_is, own, most)
end


-- fill_key(template, request) -> a text for a hash: different values of variables
-- always give different texts.
function _M.fill_key(template, request)
    return join(template, request, with_length)
end


-- fill_uri(template, request) -> the text as a URI. Its literals are in their
-- place already.
function _M.fill_uri(template, request)
    return join(template, request, in_uri)
end


return _M
