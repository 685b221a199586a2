-- Authenticates requests by calling an auth service.
--
-- authenticate looks for a cached response of the service, or else sets up the
-- call. NGINX makes it (auth_request), and denies requests that the service does
-- not allow. The other functions pass headers of the response on to client and
-- backend.
local access_log = require "headgate.access_log"
local calls = require "headgate.call"
local client = require "headgate.client"
local log = require "headgate.log"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local targets = require "headgate.target"
local template = require "headgate.template"
local lookalikes = require "headgate.lookalikes"
local call_snippet = require "headgate.feature.external_auth.call_snippet"
local verdicts = require "headgate.feature.external_auth.verdicts"

local _M = {}

local ipairs = ipairs
local joined = verdicts.joined
local ngx = ngx
local ngx_exec = ngx.exec
local ngx_header = ngx.header
local ngx_req = ngx.req
local ngx_resp = ngx.resp
local ngx_var = ngx.var
local string_find = string.find
local string_gsub = string.gsub
local string_lower = string.lower
local type = type

local BAD_REQUEST = 400
local UNAUTHORIZED = 401
local FORBIDDEN = 403
local FOUND = 302
local INTERNAL_ERROR = 500

-- The statuses of responses to which the auth service's cookies are added.
local WITH_COOKIES = {
    [200] = true, [201] = true, [204] = true, [206] = true,
    [301] = true, [302] = true, [303] = true, [304] = true, [307] = true, [308] = true,
}

local NOTHING = {}

-- passes reports whether a status of the auth service allows the request, as it does
-- for NGINX.
local function passes(status)
    return status >= 200 and status < 300
end


-- add_cookies adds the auth service's cookies to those of the response.
local function add_cookies(cookies)
    local list = ngx_header["Set-Cookie"] or {}
    if type(list) ~= "table" then
        list = { list }
    end
    for _, cookie in ipairs(type(cookies) == "table" and cookies or { cookies }) do
        list[#list + 1] = cookie
    end
    ngx_header["Set-Cookie"] = list
end


-- sign_in redirects a client to the sign-in page.
local function sign_in(policy, request, cookies)
    ngx_header["WWW-Authenticate"] = nil
    request.verdict = nil
    if cookies then
        add_cookies(cookies)
    end
    local target = requests.whole(template.fill_uri(policy.sign_in, request), request.route.relative, request.host_name)
    return requests.redirect(request, target, FOUND)
end


-- calls_itself reports whether the request is a call of the same auth check: it
-- would call itself without end.
local function calls_itself(policy)
    local checks = ngx_var.http_x_headgate_checks
    return checks and string_find(checks, policy.id, 1, true)
end


-- answer returns the verdict of a call that its snippet answers. As with the service, other
-- statuses are errors.
local function answer(request, status)
    local allows = passes(status)
    if not allows and status ~= UNAUTHORIZED and status ~= FORBIDDEN then
        return requests.finish(request, INTERNAL_ERROR)
    end
    request.verdict = { status = status, by_snippet = true }
    request.passed = allows or nil
    return allows or status
end


-- target(policy, request) -> the path and the query of the call, nil if the client could lead it to another path
local function target(policy, request)
    local uri = template.fill_uri(policy.uri, request)
    if not policy.path_varies or not targets.has_dot_segment(uri) then
        return uri
    end
end


-- prepare(policy, request, uri) -> the call, nil if the service has no endpoint
local function prepare(policy, request, uri)
    local call = calls.prepare(request, "check", policy.call)
    if not call then
        return nil
    end
    call.uri = uri
    if call.trace then
        call.trace.method = policy.method or "GET"
    end
    return call
end


-- policy: see type policy in policy.go
function _M.authenticate(policy, request)
    if calls_itself(policy) then
        log.err("host ", request.name.host, ": the auth service is behind its own auth check")
        return requests.finish(request, INTERNAL_ERROR)
    end
    local status = policy.program and call_snippet.run(policy.program, request)
    if status then
        return answer(request, status)
    end
    if policy.cache then
        request.check_key = verdicts.key_of(policy, request)
        local verdict = verdicts.get(request.check_key)
        if verdict then
            request.verdict = verdict
            if not passes(verdict.status) then
                return verdict.status, verdict.challenge
            end
            request.passed = true
            return true
        end
    end
    local uri = target(policy, request)
    if not uri then
        return requests.finish(request, BAD_REQUEST)
    end
    if not prepare(policy, request, uri) then
        log.err("host ", request.name.host, ": the auth service has no endpoint")
        return requests.finish(request, INTERNAL_ERROR)
    end
    return "ask"
end


-- call_variable returns the variable of a header that only the call has (resources.go),
-- nil for other headers.
local function call_variable(header)
    local name = "hg_call_header_" .. string_gsub(header, "-", "_")
    return not string_find(header, "_", 1, true) and settings.variables[name] and name or nil
end


-- replace puts a header into the request, since the call gets the headers of the request,
-- and remembers the value that it replaces. value: nil, a text or a list
local function replace(request, name, value)
    local call = request.calls.check
    local before = call.before or {}
    call.before = before
    if before[name] == nil then
        before[name] = ngx_req.get_headers(0)[string_lower(name)] or false
    end
    lookalikes.set(name, value)
end


-- add_headers adds the policy's headers. Those that only the call has go into its
-- variables.
local function add_headers(policy, request, variables)
    for _, header in ipairs(policy.headers) do
        local value = template.fill(header[2], request)
        local variable = call_variable(string_lower(header[1]))
        if variable then
            variables[variable] = value
        else
            replace(request, header[1], value ~= "" and value or nil)
        end
    end
end


-- add_lines adds the headers of the snippet. Those that the call has already are sent
-- beside them, as NGINX does. -> names and values of these by turns
local function add_lines(request, variables)
    local doubles = {}
    for _, header in ipairs(call_snippet.headers(request)) do
        local variable, values, from = call_variable(header.lower), header.values, 1
        if variable and (variables[variable] or "") == "" then
            variables[variable], from = values[1] or "", 2
        elseif not variable and not header.double then
            replace(request, header.name, values[1] and values)
            from = #values + 1
        end
        for i = from, #values do
            doubles[#doubles + 1] = header.name
            doubles[#doubles + 1] = values[i]
        end
    end
    return doubles
end


-- remove_headers undoes what add_headers did.
local function remove_headers(request)
    for name, value in pairs(request.calls.check.before or NOTHING) do
        ngx_req.set_header(name, value or nil)
    end
end


-- describe puts the request that the call is about into the variables of the call.
local function describe(policy, request)
    local uri = requests.target(request)
    local scheme = ngx_var.scheme
    local checks = ngx_var.http_x_headgate_checks
    local host = policy.call.host or request.host_name
    local variables = {
        hg_call_host = host,
        hg_call_name = policy.call.name or host,
        hg_call_uri = request.calls.check.uri,
        hg_call_header_x_headgate_checks = checks and checks .. " " .. policy.id or policy.id,
        hg_call_header_x_original_url = scheme .. "://" .. requests.authority(request) .. uri,
        hg_call_header_x_auth_request_redirect = policy.redirect and template.fill_uri(policy.redirect, request) or uri,
    }
    -- As in ingress-nginx: the service has no X-Forwarded-Proto.
    variables.hg_call_header_x_forwarded_host, variables.hg_call_header_x_forwarded_port = client.asked()
    if policy.method then
        variables.hg_call_method = policy.method
        variables.hg_call_header_x_original_uri = uri
        variables.hg_call_header_x_scheme = client.scheme()
    end
    local lines = policy.program and add_lines(request, variables)
    if policy.headers then
        add_headers(policy, request, variables)
    end
    requests.set_variables(variables)
    if lines then
        requests.append_lines("hg_call_header_x_original_url", ngx_var.hg_call_header_x_original_url, lines)
    end
end


function _M.before_exec(policy, request)
    if not request.passed then
        describe(policy, request)
    end
end


-- What the client wanted of the backend: the answer to its refusal is whole, and no other protocol.
local OF_THE_BACKEND = {
    "Upgrade", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
}


-- pass_answer has the service answer the client: NGINX has thrown the body of its first response away, or the
-- verdict was cached. Returns if that is not possible.
local function pass_answer(policy, request, verdict)
    local uri = target(policy, request)
    if not uri or not prepare(policy, request, uri) then
        return
    end
    for _, name in ipairs(OF_THE_BACKEND) do
        ngx_req.clear_header(name)
    end
    describe(policy, request)
    -- The answer has the challenge of the service, and maybe that of another check comes with it.
    ngx_header["WWW-Authenticate"] = nil
    local refusal = request.refusal
    local other = refusal and (refusal.challenge ~= verdict.challenge and refusal.challenge or refusal.second)
    if other and other ~= verdict.challenge then
        requests.set_challenge(other)
    end
    verdict.cookies = nil
    request.answers = refusal and refusal.status or verdict.status
    access_log.set_backend("auth-service")
    ngx_req.discard_body()
    requests.keep_once(request)
    return ngx_exec("@_check_" .. policy.answers .. "_answer")
end


-- Keeps the response of the service, if it allows or denies the request. With any
-- other status NGINX answers 500.
function _M.auth_response(policy, request)
    local status = ngx.status
    if not passes(status) and status ~= UNAUTHORIZED and status ~= FORBIDDEN then
        return
    end
    local headers = ngx_resp.get_headers(0)
    local verdict = { status = status, challenge = joined(headers["www-authenticate"]) }
    if policy.respond and passes(status) then
        local values = {}
        for _, name in ipairs(policy.respond) do
            values[name] = joined(headers[string_lower(name)])
        end
        verdict.values = values
    end
    if request.keeps then
        verdict.kept = {}
        for _, name in ipairs(request.keeps) do
            verdict.kept[name] = headers[name]
        end
    end
    if request.check_key then
        verdicts.remember(policy, request.check_key, verdict, headers)
    end
    verdict.cookies = headers["set-cookie"]
    request.verdict = verdict
    if policy.answers and status == FORBIDDEN then
        -- NGINX jumps for a 401 alone.
        request.forbids, ngx.status = true, UNAUTHORIZED
    end
end


-- set_backend_headers sets the headers of the service's response in the request, and
-- removes those of the client with these names.
local function set_backend_headers(policy, verdict)
    local values = verdict and verdict.values or NOTHING
    for _, name in ipairs(policy.respond or NOTHING) do
        lookalikes.set(name, values[name])
    end
end


-- Runs when the service was not called.
function _M.request_headers(policy, request)
    if request.passed then
        set_backend_headers(policy, request.verdict)
    end
end


function _M.auth_passed(policy, request)
    if request.passed then
        return
    end
    local verdict = request.verdict
    if not verdict or not passes(verdict.status) then
        -- NGINX should not get here. If it does, the request is denied.
        return ngx.exit(INTERNAL_ERROR)
    end
    remove_headers(request)
    if request.hides_password then
        ngx_req.clear_header("Authorization")
    end
    set_backend_headers(policy, verdict)
end


-- Headers for the service, and those of its response for the backend, are not for an
-- error backend.
function _M.error_page(policy, request)
    if request.calls and request.calls.check then
        remove_headers(request)
    end
    set_backend_headers(policy)
end


function _M.auth_refused(policy, request)
    local verdict = request.verdict
    if not verdict or passes(verdict.status) then
        return
    end
    if verdict.status == UNAUTHORIZED and policy.sign_in then
        return sign_in(policy, request, verdict.cookies)
    end
    if policy.answers and not verdict.by_snippet then
        return pass_answer(policy, request, verdict)
    end
end


function _M.header_filter(policy, request)
    local verdict = request.verdict
    local cookies = verdict and verdict.cookies
    if cookies and (policy.always_cookies or WITH_COOKIES[ngx.status]) then
        verdict.cookies = nil
        add_cookies(cookies)
    end
end


return _M
