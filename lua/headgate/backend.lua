-- A backend: its endpoints, and the picker that chooses among them.
local ejection = require "headgate.ejection"
local failure = require "headgate.failure"
local features = require "headgate.features"
local health = require "headgate.health"
local retries = require "headgate.retries"
local round_robin = require "headgate.picker.round_robin"

local _M = {}

local ngx_var = ngx.var
local string_match = string.match
local tonumber = tonumber
local values = failure.values

-- What most backends have: a field takes memory in each of them, even one that is nil.
local methods = { module = round_robin, rule = health.DEFAULT, retry_share = retries.DEFAULT_SHARE }
local meta = { __index = methods }

-- Lists of equal ports, while a backend has them: nearly all backends have one of few.
local shared_ports = setmetatable({}, { __mode = "v" })

-- Only addresses, never names or sockets: set_current_peer would take
-- "unix:…" too.
local ENDPOINT = [[^(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]):(\d{1,5})$]]
local MAX_PORT = 65535


-- picker_of(policy, backend, before) -> the picker that a unit asks for, its module
local function picker_of(policy, backend, before)
    local module, settings = round_robin, nil
    if policy then
        module, settings = features.picker(policy[1]), policy[2]
        if not module then
            error("no picker " .. tostring(policy[1]), 0)
        end
    end
    return module.new(settings, backend, before and before.module == module and before:own_picker() or nil), module
end


-- slow_start(backend, before) lets its feature know if the backend has a slow start, or had.
local function slow_start(backend, own, before)
    if own then
        backend.slow_start = own
    end
    local policy = own or before and before.slow_start
    if policy then
        features.module(policy[1], "slow_start").begin(backend, own and own[2], before)
    end
end


-- shared(ports) -> a list with the same ports, which others may have as well
local function shared(ports)
    for i = 2, #ports do
        if ports[i] ~= ports[1] then
            return ports
        end
    end
    local key = #ports * (MAX_PORT + 1) + (ports[1] or 0)
    local list = shared_ports[key] or ports
    shared_ports[key] = list
    return list
end


-- add(endpoints, addresses, ports) appends the endpoints' addresses and ports.
local function add(endpoints, addresses, ports)
    for _, endpoint in ipairs(endpoints) do
        local m = type(endpoint) == "string" and ngx.re.match(endpoint, ENDPOINT, "jo")
        local port = m and tonumber(m[2])
        if not m or port < 1 or port > MAX_PORT then
            error("an endpoint that is not an address with a port", 0)
        end
        addresses[#addresses + 1], ports[#ports + 1] = m[1], port
    end
end


-- compile(unit, name, before) -> backend
--   before: the backend of that name that this worker had, nil if none
-- A backend is { name, addresses, ports, count, picker }, and reports where its picker, or its rule
-- of ejection, wants to know the outcome of tries. avoid is nil, or a set of indexes, never all,
-- that requests avoid as far as their picker can. failing and health: see ejection.lua; retries:
-- see retries.lua.
-- terminating are further endpoints, nil if there are none, for the sessions that they have:
-- only pickers that keep sessions know them. Their indexes begin behind those of endpoints,
-- at count + 1, in addresses and ports too. While endpoints are starting, the picker is one
-- around own_picker(): see slow_start.lua.
function _M.compile(unit, name, before)
    if type(unit.endpoints) ~= "table" then
        error("a backend without endpoints", 0)
    end
    local addresses, ports = {}, {}
    add(unit.endpoints, addresses, ports)
    local backend = setmetatable({
        name = name, addresses = addresses, ports = ports, count = #addresses, picker = false, turns = false,
        reports = false,
    }, meta)
    if unit.terminating then
        backend.terminating = unit.terminating
        add(unit.terminating, addresses, ports)
    end
    backend.ports = shared(ports)
    local picker, module = picker_of(unit.picker, backend, before)
    backend.picker = picker
    if module == round_robin then
        backend.turns = picker
    else
        backend.module, backend.weight = module, picker.weight
    end
    slow_start(backend, unit.slow_start, before)
    -- Last, since they change the backend before, which stays in use after an error.
    health.adopt(backend, unit.ejection, before)
    retries.adopt(backend, unit.retry_share, before)
    if backend.picker.done or backend.rule.failures then
        backend.reports = true
    end
    return backend
end


-- endpoint(index) -> "address:port"
function methods.endpoint(self, index)
    return self.addresses[index] .. ":" .. self.ports[index]
end


-- endpoints() -> a new list of its endpoints, "address:port". Few backends need it.
function methods.endpoints(self)
    local list = {}
    for i = 1, self.count do
        list[i] = self:endpoint(i)
    end
    return list
end


-- same_endpoints(other) reports whether two backends have the same endpoints in the same order.
function methods.same_endpoints(self, other)
    if self.count ~= other.count then
        return false
    end
    for i = 1, self.count do
        if self.addresses[i] ~= other.addresses[i] or self.ports[i] ~= other.ports[i] then
            return false
        end
    end
    return true
end


-- own_picker() -> its picker without the one of a slow start around it
function methods.own_picker(self)
    return self.starting and self.picker.base or self.picker
end


-- with_picker(picker) -> this backend with another picker
function methods.with_picker(self, picker)
    local made = setmetatable({
        picker = picker, reports = picker.done ~= nil or self.rule.failures ~= nil, base = self,
    }, { __index = self })
    if self.starting then
        self.starting:wrap(made)
    end
    return made
end


-- next() -> address, port of the endpoint for a call of Headgate's own, by turns.
-- There must be one.
function methods.next(self)
    -- Not turns: requests of clients go by the backend's own picker.
    local turns = self.turns or self.own_turns
    if not turns then
        turns = round_robin.new(nil, self)
        self.own_turns = turns
    end
    local index = turns:pick(nil, self.avoid)
    return self.addresses[index], self.ports[index]
end


-- indexes(list) -> the set of the indexes of these endpoints, "address:port", and their list,
-- with false for addresses that are not endpoints any more.
function methods.indexes(self, list)
    local places = {}
    for i = 1, self.count do
        places[self:endpoint(i)] = i
    end
    local set, order = {}, {}
    for i, one in ipairs(list) do
        local index = places[one] or false
        order[i] = index
        if index then
            set[index] = true
        end
    end
    return set, order
end


-- first(list) -> the first of NGINX's values, which mostly is the only one, nil for "-".
-- Iterating over them takes several times as long, since LuaJIT can't compile it.
local function first(list)
    return tonumber(list) or list and tonumber(string_match(list, "^[%d.]+")) or nil
end


-- Reports the outcome of a request's tries to its picker.
local function report_tries(picker, tried, order)
    local status, connect = ngx_var.upstream_status, ngx_var.upstream_connect_time
    local response = ngx_var.upstream_response_time
    if not order then
        return picker:done(tried, first(status), first(connect), first(response))
    end
    status, connect, response = values(status), values(connect), values(response)
    for i = 1, #order do
        local one, connected, responded = status(), connect(), response()
        -- The endpoint may be gone.
        if order[i] then
            picker:done(order[i], one, connected, responded)
        end
    end
end


-- Passes the outcome of a request's tries to the picker, and to the rule of ejection. To be
-- called in the log phase, for backends with reports.
function methods.report(self, request)
    local tried = request.tried
    if not tried then
        return
    end
    local order = request.tries
    if self.picker.done then
        report_tries(self.picker, tried, order)
    end
    if self.rule.failures then
        ejection.report(self, order or { tried })
    end
end


return _M
