-- Client certificates. A handshake asks for one and goes on with any answer;
-- each request is checked by the policy that its host has when it comes.
local authorities = require "headgate.feature.client_certificate.authorities"
local clients = require "headgate.client"
local regex = require "headgate.regex"
local requests = require "headgate.request"
local template = require "headgate.template"

local _M = {}

local ngx_exec = ngx.exec
local ngx_req = ngx.req
local ngx_var = ngx.var

local FOUND = 302
local FORBIDDEN = 403
local MISDIRECTED = 421
local TOO_EARLY = 425
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503
-- NGINX's own, which clients get as 400.
local BAD_CERTIFICATE = 495
local NO_CERTIFICATE = 496

-- The codes of the TLS library about a certificate that no known authority has issued:
-- all that optional_no_ca lets pass, as in NGINX.
local OF_OTHERS = { [18] = true, [19] = true, [20] = true, [21] = true, [27] = true }

-- A client is { code, subject, headers }: code is nil if it showed no certificate. headers
-- are the variables of the headers about it.
local ANONYMOUS = { subject = "", headers = { hg_client_verify = "NONE" } }
local NO_HEADERS = { hg_client_verify = "", hg_client_subject = "", hg_client_issuer = "", hg_client_certificate = "" }


-- policy.refuse is on the routes of a host that can't have a policy, and is denied.
function _M.applies(policy, phase)
    return (phase == "error_page") == (policy.refuse == true)
end


function _M.error_page(_, request)
    if request.route.denied then
        return requests.finish(request, FORBIDDEN)
    end
end


-- The service must not take the client for one that may pass.
function _M.hide_client()
    requests.set_variables(NO_HEADERS)
end


-- policy: see type handshake in clientcert.go
function _M.ssl_client_hello(policy, connection)
    connection.verification = policy.id
end


function _M.ssl_certificate(policy, connection)
    if policy.id then
        authorities.ask(policy, connection)
    end
end


local function new_client(code)
    if not code then
        return ANONYMOUS
    end
    local subject = ngx_var.ssl_client_s_dn or ""
    return {
        code = code, subject = subject,
        headers = {
            hg_client_verify = code == 0 and "SUCCESS" or "FAILED:" .. authorities.text(code),
            hg_client_subject = subject,
            hg_client_issuer = ngx_var.ssl_client_i_dn or "",
        },
    }
end


-- client_of is who the client is by the policy, nil if its connection does not say. It is
-- found out once for a connection, and again when the policy changes.
local function client_of(policy, request)
    local connection = request.connection
    local verification = connection and connection.verification
    if not verification then
        return nil
    end
    if connection.checked_by == policy.id then
        return connection.client
    end
    local code
    if verification == policy.id then
        code = authorities.result()
    elseif connection.host == request.name.host then
        code = authorities.verify(policy, request.revision)
    else
        return nil
    end
    connection.checked_by, connection.client = policy.id, new_client(code)
    return connection.client
end


-- misdirected has a client make another connection. One with HTTP/1 ends, since many
-- clients would keep to it.
local function misdirected(request)
    if ngx_req.http_version() < 2 and not request.ends_connection then
        return ngx_exec("@drain")
    end
    return requests.finish(request, MISDIRECTED)
end


local function refuse(policy, request, status)
    if policy.page then
        return requests.redirect(request, template.fill_uri(policy.page, request), FOUND)
    end
    return requests.finish(request, status)
end


-- verify finds the client, or ends the request.
local function verify(policy, request)
    local client = client_of(policy, request)
    if not client then
        return misdirected(request)
    end
    local code, mode = client.code, policy.mode
    if not code then
        if mode == "on" then
            return refuse(policy, request, NO_CERTIFICATE)
        end
    elseif code ~= 0 and not (mode == "optional_no_ca" and OF_OTHERS[code]) then
        return refuse(policy, request, BAD_CERTIFICATE)
    end
    if clients.may_be_replayed() then
        return requests.finish(request, TOO_EARLY)
    end
    return client
end


-- compare ends the request unless the subject matches the pattern.
local function compare(policy, request, client)
    if client.matches == policy.pattern then
        return
    end
    local from, err, late = regex.find(request, policy.pattern_owner, client.subject, policy.pattern, "jo")
    if err then
        return requests.finish(request, late and UNAVAILABLE or INTERNAL_ERROR)
    end
    if not from then
        return requests.finish(request, FORBIDDEN)
    end
    if client ~= ANONYMOUS then
        client.matches = policy.pattern
    end
end


-- policy: see type policy in clientcert.go
function _M.rewrite(policy, request)
    local client
    -- What a load balancer says does not count: it shows no certificate.
    local secure = ngx_var.https == "on"
    if secure then
        client = policy.mode == "off" and ANONYMOUS or verify(policy, request)
    end
    if policy.pattern then
        compare(policy, request, client or ANONYMOUS)
    end
    request.tls_client = client
end


_M.before_slash = _M.rewrite


function _M.request_headers(policy, request)
    local client = request.tls_client
    if not client then
        return
    end
    local headers = client.headers
    if policy.pass and client.code then
        headers = client.headers_and_certificate
        if not headers then
            headers = { hg_client_certificate = ngx_var.ssl_client_escaped_cert or "" }
            for name, value in pairs(client.headers) do
                headers[name] = value
            end
            client.headers_and_certificate = headers
        end
    end
    requests.set_variables(headers)
end


return _M
