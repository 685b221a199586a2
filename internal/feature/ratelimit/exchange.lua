-- What the controller takes from the windows, and brings to them (internal/cluster/limitstore).
--
-- The request is {"others": {KEY: NUMBER, …}}, and the response {"replica": "…", "changed":
-- [{"key": KEY, "before": KEY, "seconds": NUMBER, "own": NUMBER}, …]}, with keys in base64.
local cjson = require "cjson.safe"
local memory = require "headgate.memory"
local windows = require "headgate.feature.rate_limit.windows"

local _M = {}

-- Counters in a response: less than a millisecond of a worker.
local MOST = 200


-- run(body) -> the response | nil, err
function _M.run(body)
    local asked = cjson.decode(body)
    if type(asked) ~= "table" then
        return nil, "the body must be JSON"
    end
    for key, others in pairs(type(asked.others) == "table" and asked.others or {}) do
        windows.learn(ngx.decode_base64(key) or "", tonumber(others) or 0)
    end
    local changed = windows.changed(MOST)
    for _, counter in ipairs(changed) do
        counter.key, counter.before = ngx.encode_base64(counter.key), ngx.encode_base64(counter.before)
    end
    return { replica = memory.instance(), changed = #changed > 0 and changed or nil }
end


return _M
