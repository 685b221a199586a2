-- The variables of NGINX, and of ingress-nginx's locations, that snippets may read besides
-- those of every template. Each has a function; none is read by a name from a unit.
local client = require "headgate.client"
local template = require "headgate.template"

local _M = {}

local ipairs = ipairs
local ngx_var = ngx.var
local pairs = pairs
local string_sub = string.sub


-- Variables that have a name behind their own one.
local FAMILIES = { "upstream_http", "upstream_cookie", "sent_http", "http", "arg", "cookie" }
local TAKES_NAME = { group = true }
for _, family in ipairs(FAMILIES) do
    TAKES_NAME[family] = true
end


-- shown reads what the client's certificate says. It counts for the host that asked for it.
local function shown(read)
    return function(request)
        local identity = request.tls_client
        return identity and identity.code and read(identity) or nil
    end
end


local READERS = {
    binary_remote_addr = function() return ngx_var.binary_remote_addr end,
    body_bytes_sent = function() return ngx_var.body_bytes_sent end,
    bytes_sent = function() return ngx_var.bytes_sent end,
    connection = function() return ngx_var.connection end,
    connection_requests = function() return ngx_var.connection_requests end,
    content_length = function() return ngx_var.content_length end,
    content_type = function() return ngx_var.content_type end,
    document_uri = function(request) return request.path end,
    hostname = function() return ngx_var.hostname end,
    https = function() return ngx_var.https end,
    limit_rate = function() return ngx_var.limit_rate end,
    msec = function() return ngx_var.msec end,
    nginx_version = function() return ngx_var.nginx_version end,
    pid = function() return ngx_var.pid end,
    proxy_add_x_forwarded_for = client.added_forwarded_for,
    proxy_upstream_name = function(request) return request.route.backend_label end,
    realip_remote_addr = function() return ngx_var.realip_remote_addr end,
    realip_remote_port = function() return ngx_var.realip_remote_port end,
    remote_port = function() return ngx_var.remote_port end,
    request = function() return ngx_var.request end,
    request_completion = function() return ngx_var.request_completion end,
    request_length = function() return ngx_var.request_length end,
    request_time = function() return ngx_var.request_time end,
    server_addr = function() return ngx_var.server_addr end,
    server_name = function(request) return request.name.host end,
    server_protocol = function() return ngx_var.server_protocol end,
    ssl_cipher = function() return ngx_var.ssl_cipher end,
    ssl_client_cert = shown(function() return ngx_var.ssl_client_cert end),
    ssl_client_escaped_cert = shown(function() return ngx_var.ssl_client_escaped_cert end),
    ssl_client_fingerprint = shown(function() return ngx_var.ssl_client_fingerprint end),
    ssl_client_i_dn = shown(function(identity) return identity.headers.hg_client_issuer end),
    ssl_client_raw_cert = shown(function() return ngx_var.ssl_client_raw_cert end),
    ssl_client_s_dn = shown(function(identity) return identity.subject end),
    ssl_client_serial = shown(function() return ngx_var.ssl_client_serial end),
    ssl_client_v_end = shown(function() return ngx_var.ssl_client_v_end end),
    ssl_client_v_remain = shown(function() return ngx_var.ssl_client_v_remain end),
    ssl_client_v_start = shown(function() return ngx_var.ssl_client_v_start end),
    ssl_client_verify = function(request)
        local identity = request.tls_client
        return identity and identity.headers.hg_client_verify or ngx_var.https == "on" and "NONE" or nil
    end,
    ssl_protocol = function() return ngx_var.ssl_protocol end,
    ssl_server_name = function() return ngx_var.ssl_server_name end,
    ssl_session_reused = function() return ngx_var.ssl_session_reused end,
    status = function(request) return request.status or ngx_var.status end,
    time_iso8601 = function() return ngx_var.time_iso8601 end,
    time_local = function() return ngx_var.time_local end,
    upstream_addr = function() return ngx_var.upstream_addr end,
    upstream_bytes_received = function() return ngx_var.upstream_bytes_received end,
    upstream_cache_status = function() return ngx_var.upstream_cache_status end,
    upstream_connect_time = function() return ngx_var.upstream_connect_time end,
    upstream_header_time = function() return ngx_var.upstream_header_time end,
    upstream_response_length = function() return ngx_var.upstream_response_length end,
    upstream_response_time = function() return ngx_var.upstream_response_time end,
    upstream_status = function() return ngx_var.upstream_status end,
    sent_http = function(_, name) return client.sent_header(name) end,
    upstream_cookie = function(_, name) return client.backend_cookie(name) end,
    upstream_http = function(_, name) return client.backend_header(name) end,
}


-- of(own) -> these readers and the ones of own, by name: for template.fill
function _M.of(own)
    for name, read in pairs(READERS) do
        own[name] = own[name] or read
    end
    return own
end


-- read(request, name) -> the value of a variable, nil if it has none or is not known
function _M.read(request, name)
    for i = 1, #FAMILIES do
        local family = FAMILIES[i]
        if string_sub(name, 1, #family + 1) == family .. "_" then
            local read = READERS[family] or template.reader(family)
            return read(request, string_sub(name, #family + 2))
        end
    end
    local read = not TAKES_NAME[name] and (READERS[name] or template.reader(name))
    return read and read(request)
end


return _M
