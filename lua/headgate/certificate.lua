-- The certificate phase: selects the certificate for a TLS client.
local client_hello = require "headgate.client_hello"
local log = require "headgate.log"
local memory = require "headgate.memory"
local names = require "headgate.names"
local ssl = require "ngx.ssl"
local ocsp = require "ngx.ocsp"
local units = require "headgate.units"

local _M = {}

local DEFAULT = "default"


-- find is the certificate for the client, nil if it can't be shown now: no other one is
-- shown instead.
local function find(revision)
    local server_name = ssl.server_name()
    if server_name then
        local name = names.for_certificate(names.of_hello(server_name), revision)
        local hash = name and name.certificate
        local certificate, later
        if hash then
            certificate, later = units.certificate(hash, revision)
        end
        if certificate then
            return certificate
        end
        if later then
            return nil
        end
    end
    return units.certificate(DEFAULT, revision)
end


local function show(certificate)
    local ok, err = ssl.clear_certs()
    if ok then
        ok, err = ssl.set_cert(certificate.chain)
    end
    if ok then
        ok, err = ssl.set_priv_key(certificate.key)
    end
    return ok, err
end


-- send_ocsp sends the OCSP response of a certificate, if there is one that has not expired.
-- If it fails, the handshake continues without the response.
local function send_ocsp(certificate, revision)
    local unit = units.ocsp_response(certificate.hash, revision)
    if not unit or unit.ends <= ngx.time() then
        return
    end
    -- Does nothing where the client does not ask for it.
    local ok, err = ocsp.set_ocsp_status_resp(unit.response)
    if not ok then
        log.err("send an OCSP response: ", err)
    end
end


function _M.run()
    local revision = memory.revision()
    local certificate = find(revision)
    if not certificate then
        return ngx.exit(ngx.ERROR)
    end
    local ok, err = show(certificate)
    if not ok then
        log.err("show a certificate: ", err)
        return ngx.exit(ngx.ERROR)
    end
    client_hello.run_certificate()
    send_ocsp(certificate, revision)
end


return _M
