-- Writes the spans of a sampled request as JSON, in the form that internal/tracing reads. The
-- attributes are those of OpenTelemetry's conventions for HTTP.
--
-- It runs once for a request that has spans, in its log phase. What a client or a tenant
-- wrote goes through text(), which bounds and escapes it.
local cjson = require "cjson.safe"
local client = require "headgate.client"
local request_id = require "headgate.request_id"

local _M = {}

local encode = cjson.encode
local ipairs = ipairs
local math_max = math.max
local math_min = math.min
local ngx_var = ngx.var
local string_byte = string.byte
local string_format = string.format
local string_gmatch = string.gmatch
local string_gsub = string.gsub
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub
local table_concat = table.concat
local tonumber = tonumber

-- Of an attribute, and of a span's name.
local MAX_TEXT, MAX_NAME = 1024, 255

local SERVER, CLIENT = 2, 3
local ERROR = 2
local CLIENT_ERROR, SERVER_ERROR = 400, 500
local BODILESS = "_OTHER"

local VERSIONS = { ["2.0"] = "2", ["3.0"] = "3" }

local METHODS = {
    GET = true, HEAD = true, POST = true, PUT = true, DELETE = true, CONNECT = true, OPTIONS = true, TRACE = true,
    PATCH = true,
}

-- Arguments whose values are secrets, in lower case.
local SECRETS = {}
for name in string_gmatch("access_token api_key apikey auth awsaccesskeyid client_secret code id_token jwt key"
    .. " passwd password pwd refresh_token secret sig signature state token x-amz-credential"
    .. " x-amz-security-token x-amz-signature x-goog-credential x-goog-signature", "%S+") do
    SECRETS[name] = true
end

-- By route: its attributes.
local of_route = setmetatable({}, { __mode = "k" })


local function text(value, most)
    most = most or MAX_TEXT
    return encode(#value > most and string_sub(value, 1, most) or value)
end


-- redact(argument) -> what replaces an argument of a query, nil to leave it
local function redact(argument)
    local name = string_match(argument, "^([^=]*)=")
    return name and SECRETS[string_lower(name)] and name .. "=REDACTED" or nil
end


-- redacted is a query without the values of secrets. Its length is bounded first, and each
-- byte looked at once: clients write it.
local function redacted(query)
    return (string_gsub(string_sub(query, 1, MAX_TEXT), "[^&]+", redact))
end


local function path_of(route)
    local path = route.path or "/"
    return (string_byte(path) == 94 and string_sub(path, 2)) or route.slash and path .. "/" or path
end


-- route_attributes are those that all requests of a route share.
local function route_attributes(route)
    local made = of_route[route]
    if not made then
        made = ',"http.route":' .. text(path_of(route))
        if route.ingress then
            made = made .. ',"k8s.namespace.name":' .. text(route.namespace or "")
                .. ',"k8s.ingress.name":' .. text(route.ingress)
        end
        local service = route.backend and not route.default and string_match(route.backend, "^.-/(.-)/")
        if service then
            made = made .. ',"k8s.service.name":' .. text(service)
        end
        of_route[route] = made
    end
    return made
end


-- add appends a text attribute, if there is a value.
local function add(list, name, value)
    if value and value ~= "" then
        list[#list + 1] = ',"' .. name .. '":' .. text(value)
    end
end


local function add_number(list, name, value)
    if value and value > 0 then
        list[#list + 1] = ',"' .. name .. '":' .. string_format("%d", value)
    end
end


-- add_status appends the status, and from a number on that it is an error. -> whether it is
local function add_status(list, status, errors)
    add_number(list, "http.response.status_code", status)
    if status and status < errors and status > 0 then
        return false
    end
    list[#list + 1] = ',"error.type":"' .. (status and status > 0 and status or BODILESS) .. '"'
    return true
end


-- pack is a span as JSON. of: trace, id, and maybe parent, remote, state.
local function pack(of, name, kind, start, finish, failed, attributes)
    return '{"trace":"' .. of.trace .. '","id":"' .. of.id .. '"'
        .. (of.parent and ',"parent":"' .. of.parent .. '"' or "") .. (of.remote and ',"remote":true' or "")
        .. (of.state and ',"state":' .. text(of.state) or "")
        .. ',"name":' .. text(name, MAX_NAME) .. ',"kind":' .. kind
        .. string_format(',"start":%.0f,"end":%.0f', start, math_max(start, finish))
        .. ',"status":' .. (failed and ERROR or 0) .. ',"attributes":{' .. string_sub(attributes, 2) .. "}}"
end


-- method_of() -> the method as the conventions have it, what it is in names of spans
local function method_of()
    local method = ngx_var.request_method
    if METHODS[method] then
        return method, method
    end
    return BODILESS, "HTTP", method
end


-- request_attributes are those of the request itself.
local function request_attributes(one, method, original)
    local scheme = client.scheme()
    local list = { ',"http.request.method":"' .. method .. '"' }
    add(list, "http.request.method_original", original)
    add(list, "url.scheme", scheme)
    add(list, "url.path", one.path)
    add(list, "url.query", redacted(ngx_var.args or ""))
    add(list, "server.address", ngx_var.host)
    local port = string_match(ngx_var.http_host or "", ":(%d%d?%d?%d?%d?)$")
    add_number(list, "server.port", tonumber(port) or scheme == "https" and 443 or 80)
    add(list, "client.address", ngx_var.remote_addr)
    add(list, "network.peer.address", ngx_var.realip_remote_addr)
    local version = string_match(ngx_var.server_protocol or "", "^HTTP/(.+)$")
    add(list, "network.protocol.version", VERSIONS[version] or version)
    add(list, "user_agent.original", ngx_var.http_user_agent)
    add(list, "headgate.request_id", ngx_var.req_id)
    list[#list + 1] = route_attributes(one.route)
    return list
end


-- words(value) -> what $upstream_… lists, without the marks between its groups
local function words(value)
    local list = {}
    for word in string_gmatch(value or "", "[^, ]+") do
        if word ~= ":" then
            list[#list + 1] = word
        end
    end
    return list
end


-- write_try writes the span of a try.
local function write_try(one, i, try, finish, out)
    local list = { ',"http.request.method":"' .. try.method .. '"' }
    local address, port = string_match(try.address, "^%[?([^%]]*)%]?:(%d+)$")
    add(list, "server.address", address)
    add_number(list, "server.port", tonumber(port))
    add_number(list, "http.request.resend_count", i - 1)
    add_number(list, "headgate.connect_time_ms", try.connect and try.connect * 1000)
    local failed = add_status(list, try.status, CLIENT_ERROR)
    out(pack({ trace = one.trace, id = try.id, parent = one.id, state = one.sent and one.sent.state }, try.name, CLIENT,
        try.start, finish, failed, table_concat(list)))
end


-- write_tries writes the spans of all tries. Those before the last one need ids of their own.
local function write_tries(one, method, name, now, out)
    local addresses = words(ngx_var.upstream_addr)
    if #addresses == 0 then
        return
    end
    local statuses, times = words(ngx_var.upstream_status), words(ngx_var.upstream_response_time)
    local connects = words(ngx_var.upstream_connect_time)
    local start = one.tries[1] or one.start
    for i, address in ipairs(addresses) do
        start = one.tries[i] or start
        local took = tonumber(times[i])
        -- NGINX counts milliseconds.
        local finish = one.tries[i + 1] or took and start + (took + 0.001) * 1000000 or now
        finish = math_min(finish, now)
        local ids = i < #addresses and request_id.next()
        -- Other words stand for a group of which no endpoint could be asked.
        if string_match(address, ":%d+$") then
            write_try(one, i, {
                id = ids and string_sub(ids, 1, 16) or one.last, address = address, status = tonumber(statuses[i]),
                connect = tonumber(connects[i]), start = start, method = method, name = name,
            }, finish, out)
        end
        start = finish
    end
end


local function write_call(one, call, now, out)
    local list = { ',"http.request.method":"' .. (METHODS[call.method] and call.method or BODILESS) .. '"' }
    add(list, "server.address", call.server)
    local failed = add_status(list, call.status, SERVER_ERROR)
    out(pack({ trace = one.trace, id = call.id, parent = one.id, state = one.sent and one.sent.state },
        "external authentication", CLIENT, call.start, call.finish or now, failed, table_concat(list)))
end


-- write(one, now, out) calls out with each span of a request (tracing.lua has its table) that
-- ends now.
function _M.write(one, now, out)
    local method, name, original = method_of()
    for _, call in ipairs(one.calls or {}) do
        write_call(one, call, now, out)
    end
    write_tries(one, method, name, now, out)
    local list = request_attributes(one, method, original)
    local status = tonumber(ngx_var.status)
    local failed = add_status(list, status, SERVER_ERROR)
    local sent = one.sent
    out(pack({
        trace = one.trace, id = one.id, parent = sent and sent.parent, remote = sent and sent.parent,
        state = sent and sent.state,
    }, one.name or name .. " " .. path_of(one.route), SERVER, one.start, now, failed, table_concat(list)))
end


return _M
