-- A host's TLS policy: what is said to the TLS library about a connection
-- before it looks for a session and chooses a cipher. NGINX's own directives
-- for that hold for all hosts of a port.
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


-- Tells once that a list of ciphers has none that the library knows. It counts
-- all the same: clients with TLS 1.2 find no cipher.
local function log_no_cipher(policy, host)
    C.ERR_clear_error()
    if not policy.told then
        policy.told = true
        log.err("host ", host, ": its list of ciphers has none that the TLS library knows: ", policy.ciphers)
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
