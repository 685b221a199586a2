-- The ciphers of a host, and whose order of them decides. NGINX's own directives apply
-- to all hosts of a port.
local ffi = require "ffi"
local log = require "headgate.log"

local _M = {}

local C = ffi.C

ffi.cdef[[
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


function _M.ssl_client_hello(policy, connection)
    local ssl = connection.ssl
    if policy.ciphers and C.SSL_set_cipher_list(ssl, policy.ciphers) ~= 1 then
        log_no_cipher(policy, connection.host)
    end
    if policy.order == "server" then
        C.SSL_set_options(ssl, SERVER_ORDER)
    elseif policy.order == "client" then
        C.SSL_clear_options(ssl, SERVER_ORDER)
    end
end


return _M
