-- A backend: its endpoints and whose turn it is.
local cjson = require "cjson.safe"

local _M = {}

local ngx_re_match = ngx.re.match
local math_random = math.random
local setmetatable = setmetatable
local tonumber = tonumber

local methods = {}
local meta = { __index = methods }

-- Only addresses, never names or sockets: set_current_peer would take
-- "unix:…" too.
local ENDPOINT = [[^(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]):(\d{1,5})$]]


-- compile(payload) -> backend | nil, err
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    if type(unit.endpoints) ~= "table" then
        return nil, "a backend without endpoints"
    end
    local addresses, ports = {}, {}
    for i, endpoint in ipairs(unit.endpoints) do
        local m = type(endpoint) == "string" and ngx_re_match(endpoint, ENDPOINT, "jo")
        local port = m and tonumber(m[2])
        if not m or port < 1 or port > 65535 then
            return nil, "an endpoint that is no address with a port"
        end
        addresses[i], ports[i] = m[1], port
    end
    local count = #addresses
    return setmetatable({
        addresses = addresses,
        ports = ports,
        count = count,
        -- Workers begin at different endpoints, or all would ask the first one
        -- after each change.
        turn = count > 0 and math_random(count) or 0,
    }, meta)
end


-- next() -> address, port of the endpoint whose turn it is. There must be one.
function methods.next(self)
    local turn = self.turn + 1
    if turn > self.count then
        turn = 1
    end
    self.turn = turn
    return self.addresses[turn], self.ports[turn]
end


-- another(tried) -> address, port of the next endpoint that is not among those
-- tried, a set of turns that it is put into. Once all are, the next one.
function methods.another(self, tried)
    local address, port
    for _ = 1, self.count do
        address, port = self:next()
        if not tried[self.turn] then
            break
        end
    end
    tried[self.turn] = true
    return address, port
end


return _M
