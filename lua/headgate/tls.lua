-- A host's TLS policy: what is said to the TLS library about a connection
-- before it looks for a session and chooses a cipher. NGINX's own directives
-- for that hold for all hosts of a port.
--
-- A policy is { sessions, ciphers, server_order, clients }; only sessions that were
-- made under the same `sessions` are resumed. `clients` is { name, ca, depth }: the
-- content with the authorities that clients' certificates must lead to. The
-- connection remembers it, since a client may ask for other hosts over it.
local base = require "resty.core.base"
local ffi = require "ffi"
local log = require "headgate.log"
local ssl = require "ngx.ssl"
local units = require "headgate.units"

local _M = {}

local C = ffi.C
local ngx = ngx
local ngx_var = ngx.var
local get_request = base.get_request

ffi.cdef[[
void *ngx_http_lua_ffi_get_req_ssl_pointer(void *r);
int SSL_set_session_id_context(void *ssl, const unsigned char *context, unsigned int length);
int SSL_set_cipher_list(void *ssl, const char *list);
uint64_t SSL_set_options(void *ssl, uint64_t options);
uint64_t SSL_clear_options(void *ssl, uint64_t options);
void ERR_clear_error(void);
]]

-- Whether any connection of this worker remembers clients.
local remembered = false

local SERVER_ORDER = 0x400000 -- SSL_OP_CIPHER_SERVER_PREFERENCE


-- Tells once that a list of ciphers has none that the library knows. It counts
-- all the same: clients with TLS 1.2 find no cipher.
local function tell_no_cipher(policy, host)
    C.ERR_clear_error()
    if not policy.told then
        policy.told = true
        log.err("host ", host, ": ssl-ciphers has no cipher that the TLS library knows: ", policy.ciphers)
    end
end


-- apply(policy, host) -> true | nil, err. To be called for a client's hello.
function _M.apply(policy, host)
    local connection = C.ngx_http_lua_ffi_get_req_ssl_pointer(get_request())
    if connection == nil then
        return nil, "no TLS connection"
    end
    if C.SSL_set_session_id_context(connection, policy.sessions, #policy.sessions) ~= 1 then
        C.ERR_clear_error()
        return nil, "keep sessions apart"
    end
    if policy.ciphers and C.SSL_set_cipher_list(connection, policy.ciphers) ~= 1 then
        tell_no_cipher(policy, host)
    end
    if policy.server_order then
        C.SSL_set_options(connection, SERVER_ORDER)
    elseif policy.server_order == false then
        C.SSL_clear_options(connection, SERVER_ORDER)
    end
    if policy.clients then
        remembered = true
        ngx.ctx.clients = policy.clients
    end
    return true
end


-- ask_client(revision) -> true | nil, err. To be called where the certificate is
-- shown: asks the client for its own, if apply said so. A handshake that resumes
-- a session does not come here; the session knows how its client was verified.
function _M.ask_client(revision)
    local clients = remembered and ngx.ctx.clients
    if not clients then
        return true
    end
    if not clients.chain then
        local ca = units.content(clients.ca, revision)
        if not ca then
            return nil, "no content " .. clients.ca
        end
        local chain, err = ssl.parse_pem_cert(ca)
        if not chain then
            return nil, err
        end
        clients.chain = chain
    end
    return ssl.verify_client(clients.chain, clients.depth)
end


-- Whether a request came over a connection that was made under these clients, or
-- over none of TLS.
function _M.is_under(clients)
    if ngx_var.https ~= "on" then
        return true
    end
    local under = ngx.ctx.clients
    return under ~= nil and under.name == clients.name
end


return _M
