-- Sends the OCSP response of a certificate, if there is one that has not expired.
local log = require "headgate.log"
local ocsp = require "ngx.ocsp"
local units = require "headgate.units"

local _M = {}


-- If it fails, the handshake continues without the response.
function _M.show(certificate, revision)
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


return _M
