-- The unit of an OCSP response, which is sent with its certificate.

local _M = {}


-- compile(unit) -> { response, ends }
-- ends: the time when the response expires.
function _M.compile(unit)
    local response = type(unit.response) == "string" and ngx.decode_base64(unit.response)
    if not response or type(unit["until"]) ~= "number" then
        error("an OCSP response without its bytes or its end", 0)
    end
    return { response = response, ends = unit["until"] }
end


return _M
