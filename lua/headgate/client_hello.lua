-- The phases of a TLS handshake in which policies of hosts run. nginx.conf has the
-- client hello, which comes before a session is looked up, only if a host has such a
-- policy or unknown names are rejected.
local base = require "resty.core.base"
local clienthello = require "ngx.ssl.clienthello"
local features = require "headgate.features"
local ffi = require "ffi"
local memory = require "headgate.memory"
local names = require "headgate.names"
local settings = require "headgate.settings"
local units = require "headgate.units"

local _M = {}

local C = ffi.C
local get_request = base.get_request
local ngx = ngx

ffi.cdef[[
void *ngx_http_lua_ffi_get_req_ssl_pointer(void *r);
int SSL_set_session_id_context(void *ssl, const unsigned char *context, unsigned int length);
]]

-- Whether this worker has had a connection with policies.
local used = false


-- An error ends the handshake.
function _M.run()
    local server_name = clienthello.get_client_hello_server_name()
    local revision = memory.revision()
    local found = names.for_host(server_name and names.of_hello(server_name) or names.DEFAULT, revision)
    if settings.reject_unknown and (found == nil or found and found.host == names.DEFAULT) then
        return ngx.exit(ngx.ERROR)
    end
    local host, later
    if found then
        host, later = units.host(found.host, revision)
    end
    if later then
        -- The host may have policies.
        return ngx.exit(ngx.ERROR)
    end
    local tls = host and host.tls
    if not tls then
        return
    end
    local ssl = C.ngx_http_lua_ffi_get_req_ssl_pointer(get_request())
    if ssl == nil or C.SSL_set_session_id_context(ssl, tls.sessions, #tls.sessions) ~= 1 then
        error("the session context can't be set")
    end
    used = true
    local connection = { host = found.host, revision = revision, ssl = ssl, phases = tls.phases }
    ngx.ctx.connection = connection
    if tls.phases.ssl_client_hello then
        features.run(tls.phases.ssl_client_hello, connection)
    end
end


-- Runs in the certificate phase, which comes later, and not if a session is resumed.
function _M.run_certificate()
    local connection = used and ngx.ctx.connection
    if connection and connection.phases.ssl_certificate then
        features.run(connection.phases.ssl_certificate, connection)
    end
end


return _M
