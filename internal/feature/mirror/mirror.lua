-- Sends copies of requests to a mirror.
--
-- A copy is made before the first endpoint of the backend is asked: the request has
-- passed all checks by then, and its body was read. A timer sends it apart from the
-- request, which therefore never waits for the mirror; NGINX's own mirror subrequest would
-- hold up the next request of a connection. What becomes of a copy changes nothing.
--
-- Copies are bounded in number, memory and time. Those beyond that are dropped.
local client = require "headgate.client"
local counters = require "headgate.counters"
local log = require "headgate.log"
local settings = require "headgate.settings"
local targets = require "headgate.target"
local template = require "headgate.template"
local units = require "headgate.units"

local _M = {}

local io_open = io.open
local ipairs = ipairs
local math_floor = math.floor
local ngx = ngx
local ngx_now = ngx.now
local ngx_req = ngx.req
local ngx_timer_at = ngx.timer.at
local ngx_var = ngx.var
local pairs = pairs
local pcall = pcall
local string_byte = string.byte
local string_find = string.find
local string_gsub = string.gsub
local string_lower = string.lower
local table_concat = table.concat
local tcp = ngx.socket.tcp
local type = type

local SLASH = 47

-- A worker has room for this many copies at a time. Each takes a place, and one for each
-- BLOCK of a body in memory. A namespace gets no place beyond a SHARE of those that are free:
-- alone it has 102. So others have room, however slow its mirrors are.
local PLACES = 512
local SHARE = 4
local BLOCK = 64 * 1024

-- In seconds: for the connection (and TLS), and for all of a copy.
local CONNECT_TIMEOUT = 5
local TIMEOUT = 60
-- What is read of a response; a mirror that sends more is cut off.
local MAX_RESPONSE = 1024 * 1024

-- Headers that say where a request ends or what a connection is for, and those that the
-- copy gets as the backend does.
local OWN = {
    ["connection"] = true, ["content-length"] = true, ["early-data"] = true, ["expect"] = true, ["host"] = true,
    ["http2-settings"] = true, ["keep-alive"] = true, ["proxy"] = true, ["proxy-connection"] = true,
    ["ssl-client-cert"] = true, ["ssl-client-issuer-dn"] = true, ["ssl-client-subject-dn"] = true,
    ["ssl-client-verify"] = true, ["te"] = true,
    ["traceparent"] = settings.tracing, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-forwarded-for"] = true,
    ["x-forwarded-host"] = true, ["x-forwarded-port"] = true, ["x-forwarded-proto"] = true,
    ["x-forwarded-scheme"] = true, ["x-headgate-mirrors"] = true, ["x-original-forwarded-for"] = true,
    ["x-original-forwarded-host"] = true, ["x-real-ip"] = true, ["x-request-id"] = true, ["x-scheme"] = true,
}

-- The places in use, by namespace and in all.
local taken, all_taken = {}, 0


local function take(namespace, places)
    local own = (taken[namespace] or 0) + places
    if own > (PLACES - all_taken) / SHARE then
        return false
    end
    taken[namespace] = own
    all_taken = all_taken + places
    return true
end


local function give_back(namespace, places)
    local own = taken[namespace] - places
    taken[namespace] = own > 0 and own or nil
    all_taken = all_taken - places
end


-- go_on has the next step end when the copy's time ends. -> whether there is some left, err
local function go_on(sock, copy)
    local left = copy.ends - ngx_now()
    if left <= 0 then
        return nil, "timeout"
    end
    sock:settimeout(left * 1000)
    return true
end


-- send_file sends a body that is in a file. -> whether all of it was sent, err
local function send_file(sock, copy)
    local left = copy.length
    while left > 0 do
        local block = copy.file:read(left < BLOCK and left or BLOCK)
        if not block then
            return nil, "the body ended early"
        end
        left = left - #block
        local ok, err = go_on(sock, copy)
        if ok then
            ok, err = sock:send(block)
        end
        if not ok then
            return nil, err
        end
    end
    return true
end


-- drain reads the response, so that the mirror can end it.
local function drain(sock, copy)
    local left = MAX_RESPONSE
    while left > 0 do
        local data
        local ok, err = go_on(sock, copy)
        if ok then
            data, err = sock:receiveany(BLOCK)
        end
        if not data then
            return err == "closed" or nil, err
        end
        left = left - #data
    end
    return true
end


local function exchange(sock, copy)
    sock:settimeout(CONNECT_TIMEOUT * 1000)
    local ok, err = sock:connect(copy.address, copy.port)
    if ok and copy.secure then
        -- As for backends, the certificate is not verified.
        ok, err = sock:sslhandshake(false, copy.name, false)
    end
    if ok then
        ok, err = go_on(sock, copy)
    end
    if ok then
        ok, err = sock:send(copy.data and { copy.head, copy.data } or copy.head)
    end
    if ok and copy.file then
        ok, err = send_file(sock, copy)
    end
    if ok then
        ok, err = drain(sock, copy)
    end
    sock:close()
    return ok, err
end


-- release ends a copy, sent or not.
local function release(copy)
    if copy.file then
        copy.file:close()
    end
    give_back(copy.namespace, copy.places)
end


local function note(copy, err)
    log.err("host ", copy.host, ": copy a request to ", copy.address or "its mirror", ": ", err)
end


-- Runs in a timer, which may come early because the worker ends: the copy is sent all the
-- same.
local function send(_, copy)
    local sock, problem = tcp()
    local ok, sent, err = true, nil, problem
    if sock then
        ok, sent, err = pcall(exchange, sock, copy)
    end
    release(copy)
    if not (ok and sent) then
        note(copy, ok and err or sent)
    end
end


-- leads_back reports whether the request is a copy for the same mirror.
local function leads_back(policy)
    local mirrors = ngx_var.http_x_headgate_mirrors
    return mirrors and string_find(mirrors, policy.id, 1, true)
end


local function host_of(policy, request)
    local host = policy.header and template.fill(policy.header, request)
    return host and string_find(host, "^[%w._:%[%]-]+$") and host or policy.host
end


-- uri_of -> path and query of the copy, nil if the mirror may read the path as one that its
-- policy does not have.
local function uri_of(policy, request)
    local uri = template.fill_uri(policy.uri, request)
    if policy.path_varies and targets.has_dot_segment(uri) then
        return nil
    end
    return string_byte(uri) == SLASH and uri or "/" .. uri
end


-- add_headers adds those of the client, as the backend gets them.
local function add_headers(lines, request)
    local function add(name, value)
        lines[#lines + 1] = name .. ": " .. string_gsub(value, "[%z\r\n]", "") .. "\r\n"
    end
    local original_uri = settings.original_uri
    local headers = ngx_req.get_headers(0, true)
    local has_password = false
    for name, value in pairs(headers) do
        local lower = string_lower(name)
        has_password = has_password or lower == "authorization"
        if not OWN[lower] and not (original_uri and lower == "x-original-uri") then
            for _, one in ipairs(type(value) == "table" and value or { value }) do
                add(name, one == true and "" or one)
            end
        end
    end
    -- As in ingress-nginx: the copy is that of the client's request.
    if request.password and not has_password then
        add("Authorization", request.password)
    end
    local id = ngx_var.req_id
    if id ~= "" then
        add("X-Request-ID", id)
    end
    if settings.tracing and ngx_var.hg_trace ~= "" then
        add("traceparent", ngx_var.hg_trace)
    end
    add("X-Real-IP", ngx_var.remote_addr)
    add("X-Forwarded-For", client.forwarded_for())
    add("X-Forwarded-Host", ngx_var.hg_host)
    add("X-Forwarded-Port", ngx_var.hg_port)
    local scheme = client.scheme()
    add("X-Forwarded-Proto", scheme)
    add("X-Forwarded-Scheme", scheme)
    add("X-Scheme", scheme)
    local original_for, original_host = client.original_for(), client.original_host()
    if original_for then
        add("X-Original-Forwarded-For", original_for)
    end
    if original_host then
        add("X-Original-Forwarded-Host", original_host)
    end
    if original_uri then
        add("X-Original-URI", ngx_var.request_uri)
    end
    if ngx_var.hg_early_data == "1" then
        add("Early-Data", "1")
    end
end


local function head_of(policy, request, uri, length)
    local mirrors = ngx_var.http_x_headgate_mirrors
    local lines = {
        ngx_req.get_method(), " ", uri, " HTTP/1.1\r\nHost: ", host_of(policy, request), "\r\nConnection: close\r\n",
        "X-Headgate-Mirrors: ", mirrors and mirrors .. " " .. policy.id or policy.id, "\r\n",
    }
    add_headers(lines, request)
    if length > 0 or ngx_var.http_content_length or ngx_var.http_transfer_encoding then
        lines[#lines + 1] = "Content-Length: " .. length .. "\r\n"
    end
    lines[#lines + 1] = "\r\n"
    return table_concat(lines)
end


-- add_body gives the copy the body of the request, which NGINX has in memory or in a file.
-- -> whether there is room for it | nil, err
local function add_body(copy)
    local data = ngx_req.get_body_data()
    if data then
        copy.data, copy.length = data, #data
        local places = math_floor(#data / BLOCK)
        if not take(copy.namespace, places) then
            return false
        end
        copy.places = copy.places + places
        return true
    end
    local name = ngx_req.get_body_file()
    if name then
        -- What is open stays readable when NGINX removes the file with the request.
        local err
        copy.file, err = io_open(name, "rb")
        if not copy.file then
            return nil, err
        end
        copy.length = copy.file:seek("end")
        copy.file:seek("set", 0)
    end
    return true
end


-- count_dropped counts a copy for which there is no room.
local function count_dropped(namespace)
    if counters.refuse("mirror", namespace) then
        log.err("namespace ", namespace, ": its mirrors are too slow: copies of requests are dropped")
    end
end


-- fill makes a copy of the request. -> whether it is to be sent | nil, err
local function fill(copy, policy, request)
    local uri = uri_of(policy, request)
    local backend = uri and units.with_endpoints(policy.backend, request.revision)
    if not backend then
        return false
    end
    if policy.body then
        local has_room, err = add_body(copy)
        if not has_room then
            if not err then
                count_dropped(copy.namespace)
            end
            return has_room, err
        end
    end
    copy.head = head_of(policy, request, uri, copy.length)
    copy.address, copy.port = backend:next()
    copy.secure, copy.name = policy.secure, policy.name
    copy.ends = ngx_now() + TIMEOUT
    return ngx_timer_at(0, send, copy)
end


-- Reads the body, before the backend is asked. A file that Lua has NGINX write has a name,
-- until the request ends; others have none.
function _M.access()
    ngx_req.read_body()
end


function _M.applies(policy, phase)
    return phase == "balancer" or policy.body == true
end


-- policy: see type policy in mirror.go
function _M.balancer(policy, request)
    if leads_back(policy) then
        return
    end
    local namespace = request.route.namespace
    if not take(namespace, 1) then
        return count_dropped(namespace)
    end
    local copy = { namespace = namespace, host = request.host_name, places = 1, length = 0 }
    -- No error of a copy is one of the request.
    local ok, filled, err = pcall(fill, copy, policy, request)
    if ok and filled then
        return
    end
    release(copy)
    if not ok or err then
        note(copy, ok and err or filled)
    end
end


return _M
