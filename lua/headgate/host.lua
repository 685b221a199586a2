-- A host: its routes, and which one a path leads to.
--
-- An Exact route is found by its path. A Prefix route "/foo" answers for
-- "/foo" itself and for what lies below "/foo/"; one written "/foo/" answers
-- for what lies below and redirects "/foo" there. All are in tables by path,
-- and only the lengths that a prefix of this host has are tried, longest
-- first: the cost depends neither on the number of routes nor on the path.
local cjson = require "cjson.safe"
local features = require "headgate.features"
local settings = require "headgate.settings"

local _M = {}

local ipairs = ipairs
local next = next
local setmetatable = setmetatable
local ngx_re_find = ngx.re.find
local os_clock = os.clock
local string_byte = string.byte
local string_gsub = string.gsub
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub
local table_sort = table.sort

local methods = {}
local meta = { __index = methods }

local SLASH = 47

-- What answers for a path whose route was written with a slash at its end.
local REDIRECT = { redirect_to_slash = true }


-- Hosts are many and a request touches few of their bytes twice: what is empty
-- or alike is one and the same table for all of them.
local EMPTY = {}


-- phases_of gives the phases of the numbered policies of a unit.
local function phases_of(numbers, unit, location)
    local policies = {}
    for i, number in ipairs(numbers) do
        policies[i] = unit.policies[number]
        if not policies[i] then
            return nil, "a route with a policy that is not there"
        end
    end
    return features.phases(policies, location)
end


-- fallback is the backend to ask in the place of the route's own, and what it
-- is told about that one.
local function fallback(packed, unit)
    local key = unit.backends[packed.fallback]
    local namespace, service, port = string_match(unit.backends[packed.backend], "^(.-)/(.-)/(.*)$")
    return {
        backend = key,
        label = "custom-default-backend-" .. string_gsub(string_gsub(key, "/$", ""), "/", "-"),
        namespace = namespace,
        ingress = unit.origins[packed.origin][2],
        service = service,
        port = port,
    }
end


-- route makes of a packed route what a request needs.
local function route(packed, unit)
    local profile = unit.profiles[packed.profile]
    if not profile then
        return nil, "a route without a profile"
    end
    local backend = packed.backend and unit.backends[packed.backend]
    -- The location to go on in; nil if the request is there already.
    local location = profile ~= settings.default_profile and "@" .. profile or nil
    local phases, err = phases_of(packed.policies or EMPTY, unit, location)
    if not phases then
        return nil, err
    end
    return {
        backend = backend,
        -- The predecessor's name of it, for the log.
        backend_label = backend and not packed.default and string_gsub(backend, "/", "-") or "upstream-default-backend",
        fallback = packed.fallback and fallback(packed, unit),
        default = packed.default,
        denied = packed.denied,
        location = location,
        phases = phases,
    }
end


-- add_pattern puts a pattern behind those that are tried before it. Most are
-- plain text behind the "^", which needs no regular expression: what that is,
-- literalBytes in internal/build/pattern.go says too.
local function add_pattern(host, packed, compiled)
    local text = string_match(packed.pattern, "^%^([%w/_~!@#%%&=:;,<>'\"`-]*)$")
    local list = host.patterns or {}
    host.patterns = list
    list[#list + 1] = {
        text = text and string_lower(text),
        pattern = packed.pattern,
        route = compiled,
    }
end


-- add_prefix puts a prefix route where it is found. Of "/foo" and "/foo/" the
-- second has what lies below, and the first what is left: "/foo" itself.
local function add_prefix(host, packed, compiled)
    local path = packed.prefix
    if path == "/" then
        host.root = host.root or compiled
    elseif packed.slash then
        host.below[path] = compiled
        host.itself[path] = host.itself[path] or REDIRECT
    else
        host.below[path] = host.below[path] or compiled
        host.itself[path] = compiled
    end
end


local function lengths(paths)
    local seen, list = {}, {}
    for path in pairs(paths) do
        if not seen[#path] then
            seen[#path] = true
            list[#list + 1] = #path
        end
    end
    table_sort(list, function(a, b) return a > b end)
    return list
end


-- compile(payload) -> host | nil, err
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local host = { exact = {}, itself = {}, below = {}, lengths = {}, root = nil }
    for _, packed in ipairs(unit.routes) do
        local compiled
        compiled, err = route(packed, unit)
        if not compiled then
            return nil, err
        end
        if packed.exact then
            host.exact[packed.exact] = compiled
        elseif packed.prefix then
            add_prefix(host, packed, compiled)
        elseif packed.pattern then
            add_pattern(host, packed, compiled)
        else
            return nil, "a route without a path"
        end
    end
    host.lengths = lengths(host.below)
    for _, field in ipairs({ "exact", "itself", "below", "lengths" }) do
        if next(host[field]) == nil then
            host[field] = EMPTY
        end
    end
    return setmetatable(host, meta)
end


-- What expressions may take together, in seconds of the worker's time, and
-- after how many of them the clock is read. Each is bounded by itself, but a
-- host may have hundreds that all end just before that.
local BUDGET = 0.1
local STRIDE = 16


-- find_pattern(list, path) -> the first route that matches | nil, err if an
-- expression, or all together, gave up: what it would have said is not known,
-- and the next route may be one that guards less.
local function find_pattern(list, path)
    local lower = string_lower(path)
    local started = #list >= STRIDE and os_clock()
    local tried = 0
    for i = 1, #list do
        local candidate = list[i]
        local text = candidate.text
        if text then
            if string_sub(lower, 1, #text) == text then
                return candidate.route
            end
        else
            local from, _, err = ngx_re_find(path, candidate.pattern, "ijo")
            if from then
                return candidate.route
            end
            if err then
                return nil, "match " .. candidate.pattern .. ": " .. err
            end
            tried = tried + 1
            if tried % STRIDE == 0 and os_clock() - started > BUDGET then
                return nil, "match " .. candidate.pattern .. ": the patterns before it took too long"
            end
        end
    end
    return nil
end


-- find(path) -> the route, nil if there is none | nil, err. A route may have
-- redirect_to_slash set instead of all else.
function methods.find(self, path)
    if self.patterns then
        return find_pattern(self.patterns, path)
    end
    local found = self.exact[path] or self.itself[path]
    if found then
        return found
    end
    local list = self.lengths
    for i = 1, #list do
        local length = list[i]
        if string_byte(path, length + 1) == SLASH then
            found = self.below[string_sub(path, 1, length)]
            if found then
                return found
            end
        end
    end
    return self.root
end


return _M
