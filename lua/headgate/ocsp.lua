-- Shows the OCSP answer on a certificate, if there is one that still holds.
local log = require "headgate.log"
local ocsp = require "ngx.ocsp"
local units = require "headgate.units"

local _M = {}

local ngx_time = ngx.time


-- A handshake goes on without its staple, whatever goes wrong.
function _M.show(certificate, revision)
    local staple = units.staple(certificate.hash, revision)
    if not staple or staple.ends <= ngx_time() then
        return
    end
    -- Does nothing where the client does not ask for it.
    local ok, err = ocsp.set_ocsp_status_resp(staple.response)
    if not ok then
        log.err("show an OCSP answer: ", err)
    end
end


return _M
