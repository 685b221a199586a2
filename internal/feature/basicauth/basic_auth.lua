-- The auth check by name and password, with HTTP Basic or Digest authentication.
local client = require "headgate.client"
local digest = require "headgate.feature.basic_auth.digest"
local log = require "headgate.log"
local password = require "headgate.feature.basic_auth.password"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}

local ngx_req = ngx.req
local ngx_var = ngx.var

local UNAUTHORIZED = 401
local UNAVAILABLE = 503


-- hash_of is the hash of a user, nil if there is none. users: "\nNAME:HASH\n…"
local function hash_of(users, name)
    -- No name in the list contains them: a match would be something else than a
    -- name.
    if name == "" or string.find(name, "[\n:]") then
        return nil
    end
    local _, colon = string.find(users, "\n" .. name .. ":", 1, true)
    if not colon then
        return nil
    end
    return string.sub(users, colon + 1, string.find(users, "\n", colon, true) - 1)
end


-- credentials() -> the name and the password that the client sent, nil if it
-- sent none
local function credentials()
    local header = client.header("authorization")
    local encoded = header and string.match(header, "^[Bb][Aa][Ss][Ii][Cc] +([%w+/]+=*)$")
    local decoded = encoded and ngx.decode_base64(encoded)
    if not decoded then
        return nil
    end
    return string.match(decoded, "^([^:]+):(.*)$")
end


local function authenticate_basic(policy, users, request)
    local name, given = credentials()
    local hash = name and hash_of(users, name)
    -- Nil if the check failed: then the request is denied.
    local matches = false
    if hash then
        matches = password.matches(given, hash, policy.users, request.route.namespace)
    end
    if matches == nil then
        return requests.finish(request, UNAVAILABLE)
    end
    if matches then
        return true
    end
    return UNAUTHORIZED, 'Basic realm="' .. policy.realm .. '"'
end


local function authenticate_digest(policy, users, request)
    local header = client.header("authorization")
    local fields = header and digest.parse(header)
    local pass, stale = false, false
    if fields then
        local function find(name)
            return hash_of(users, name)
        end
        pass, stale = digest.check(fields, find, ngx_req.get_method(), ngx_var.request_uri, policy.realm, policy.users)
    end
    if pass then
        return true
    end
    local nonce = digest.new_nonce(policy.users)
    if not nonce then
        return requests.finish(request, UNAVAILABLE)
    end
    return UNAUTHORIZED, 'Digest realm="' .. policy.realm .. '", qop="auth", algorithm=MD5, nonce="' .. nonce ..
        (stale and '", stale=true' or '"')
end


-- policy: { users, realm, digest }
function _M.authenticate(policy, request)
    local users = units.content(policy.users, request.revision)
    if not users then
        log.err("the users of ", request.route.namespace, "/", request.route.ingress, " are not in the shared memory")
        return requests.finish(request, UNAVAILABLE)
    end
    if policy.digest then
        return authenticate_digest(policy, users, request)
    end
    return authenticate_basic(policy, users, request)
end


-- Removes the password from the request to the backend. An auth service that is
-- still to be called gets it; external_auth.lua removes it after that.
function _M.request_headers(_, request)
    -- NGINX reads the name for the access log now or never.
    local _ = ngx_var.remote_user
    request.password = ngx_var.http_authorization
    if request.route.identity and not request.passed then
        request.hides_password = true
        return
    end
    ngx_req.clear_header("Authorization")
end


return _M
