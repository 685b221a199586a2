-- The unit of an OCSP response, which is sent with its certificate.
local cjson = require "cjson.safe"

local _M = {}

local ngx = ngx


-- compile(payload) -> { response, ends } | nil, err
-- ends: the time when the response expires.
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local response = type(unit.response) == "string" and ngx.decode_base64(unit.response)
    if not response or type(unit["until"]) ~= "number" then
        return nil, "an OCSP response without its bytes or its end"
    end
    return { response = response, ends = unit["until"] }
end


return _M
