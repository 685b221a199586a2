-- A staple unit: the OCSP answer that is shown with a certificate.
local cjson = require "cjson.safe"

local _M = {}

local ngx = ngx


-- compile(payload) -> { response, ends } | nil, err
-- ends: the time from which on the answer is not to be shown.
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local response = type(unit.response) == "string" and ngx.decode_base64(unit.response)
    if not response or type(unit["until"]) ~= "number" then
        return nil, "a staple without an answer or an end"
    end
    return { response = response, ends = unit["until"] }
end


return _M
