-- A certificate unit, parsed once: parsing costs more than the handshake.
local ssl = require "ngx.ssl"

local _M = {}

-- In kilobytes: what OpenSSL takes for a chain and a key, which the collector does not see, and after how much
-- of that it takes a step.
local OUTSIDE, STEP = 8, 256

local outside = 0


-- compile(unit, name) -> { chain, key, hash }
-- hash: the name of the certificate's OCSP response; the name of the default
-- certificate is not its hash.
function _M.compile(unit, name)
    if type(unit.chain) ~= "string" or type(unit.key) ~= "string" then
        error("a certificate without chain or key", 0)
    end
    local chain, err = ssl.parse_pem_cert(unit.chain)
    if not chain then
        error("the chain: " .. err, 0)
    end
    local key
    key, err = ssl.parse_pem_priv_key(unit.key)
    if not key then
        error("the key: " .. err, 0)
    end
    -- As if that were allocated in Lua: what the cache has dropped is freed in time.
    outside = outside + OUTSIDE
    if outside >= STEP then
        outside = 0
        collectgarbage("step", STEP)
    end
    return { chain = chain, key = key, hash = unit.hash or name }
end


return _M
