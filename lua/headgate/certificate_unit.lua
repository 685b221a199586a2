-- A certificate unit, parsed once: parsing costs more than the handshake.
local cjson = require "cjson.safe"
local ssl = require "ngx.ssl"

local _M = {}


-- compile(payload, name) -> { chain, key, hash } | nil, err
-- hash: the name of the certificate's OCSP response; the name of the default
-- certificate is not its hash.
function _M.compile(payload, name)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    if type(unit.chain) ~= "string" or type(unit.key) ~= "string" then
        return nil, "a certificate without chain or key"
    end
    local chain, key
    chain, err = ssl.parse_pem_cert(unit.chain)
    if not chain then
        return nil, "the chain: " .. err
    end
    key, err = ssl.parse_pem_priv_key(unit.key)
    if not key then
        return nil, "the key: " .. err
    end
    return { chain = chain, key = key, hash = unit.hash or name }
end


return _M
