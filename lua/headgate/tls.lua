-- A host's TLS policy: settings of the TLS library for a connection, before it looks up
-- a session and chooses a cipher. NGINX's own directives apply to all hosts of a port.
--
-- A policy is { sessions, ciphers, server_order }; only sessions that were made
-- under the same `sessions` are resumed.
local base = require "resty.core.base"
local ffi = require "ffi"
local log = require "headgate.log"

local _M = {}

local C = ffi.C
local get_request = base.get_request

ffi.cdef[[
void *ngx_http_lua_ffi_get_req_ssl_pointer(void *r);
int SSL_set_session_id_context(void *ssl, const unsigned char *context, unsigned int length);
int SSL_set_cipher_list(void *ssl, const char *list);
uint64_t SSL_set_options(void *ssl, uint64_t options);
uint64_t SSL_clear_options(void *ssl, uint64_t options);
void ERR_clear_error(void);
]]

local SERVER_ORDER = 0x400000 -- SSL_OP_CIPHER_SERVER_PREFERENCE


-- Logs once that the library knows none of the ciphers of a list. The list is used all
-- the same: clients with TLS 1.2 find no cipher.
local function log_no_cipher(policy, host)
    C.ERR_clear_error()
    if not policy.logged then
        policy.logged = true
        log.err("host ", host, ": the TLS library knows none of the ciphers: ", policy.ciphers)
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
        return nil, "set the session context"
    end
    if policy.ciphers and C.SSL_set_cipher_list(connection, policy.ciphers) ~= 1 then
        log_no_cipher(policy, host)
    end
    if policy.server_order then
        C.SSL_set_options(connection, SERVER_ORDER)
    elseif policy.server_order == false then
        C.SSL_clear_options(connection, SERVER_ORDER)
    end
    return true
end


return _M
