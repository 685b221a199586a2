-- The client hello phase of a TLS handshake, before a session is looked up: applies
-- the TLS policy of the host. nginx.conf has it only if a host has such a policy.
local clienthello = require "ngx.ssl.clienthello"
local log = require "headgate.log"
local memory = require "headgate.memory"
local names = require "headgate.names"
local settings = require "headgate.settings"
local tls = require "headgate.tls"
local units = require "headgate.units"

local _M = {}

local ngx = ngx


function _M.run()
    local server_name = clienthello.get_client_hello_server_name()
    local revision = memory.revision()
    local found = names.for_host(server_name and names.of_hello(server_name) or names.DEFAULT, revision)
    if settings.reject_unknown and (found == nil or found and found.host == names.DEFAULT) then
        return ngx.exit(ngx.ERROR)
    end
    local host = found and units.host(found.host, revision)
    if not host or not host.tls then
        return
    end
    local ok, err = tls.apply(host.tls, found.host)
    if not ok then
        log.err("apply the TLS policy of host ", found.host, ": ", err)
        return ngx.exit(ngx.ERROR)
    end
end


return _M
