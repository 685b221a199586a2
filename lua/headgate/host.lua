-- A host: its routes, and how a path finds one.
--
-- An Exact route is found by its path; one written "/foo/" redirects "/foo"
-- there. A Prefix route "/foo" answers for
-- "/foo" itself and for what lies below "/foo/"; one written "/foo/" answers
-- for what lies below and redirects "/foo" there. All are in tables by path,
-- and only the lengths that a prefix of this host has are tried, longest
-- first: the cost depends neither on the number of routes nor on the path.
local access_log = require "headgate.access_log"
local features = require "headgate.features"
local path_patterns = require "headgate.path_patterns"
local settings = require "headgate.settings"

local _M = {}

local find_pattern = path_patterns.find
local string_byte = string.byte
local string_sub = string.sub

local SLASH = 47

-- The longest name of sessions that the TLS library takes.
local MAX_SESSIONS = 32

-- There are many hosts: empty or equal tables are shared between them, and a field that few of them
-- have is not set in the others, not even to nil. A table of nine fields takes twice the memory of one
-- of eight, which is what plain routes have.
local EMPTY = {}

-- What most hosts have: one route, that of all paths.
local methods = { exact = EMPTY, itself = EMPTY, below = EMPTY, lengths = EMPTY, tls = false, cleans_paths = false }
local meta = { __index = methods }

-- Fields of few routes, which are the packed ones.
local RARE = { "default", "denied", "satisfy_any", "relative", "slash" }


-- phases_of returns the phases of policies of a unit, by their numbers. known has the
-- earlier results for this unit: many routes have the same policies.
local function phases_of(numbers, unit, location, known)
    local key = location or ""
    if numbers ~= EMPTY then
        key = table.concat(numbers, ",") .. key
    end
    if not known[key] then
        local policies = {}
        for i, number in ipairs(numbers) do
            policies[i] = unit.policies[number] or error("a route with an unknown policy", 0)
        end
        local phases, err = features.phases(policies, location)
        known[key] = phases or error(err, 0)
    end
    return known[key]
end


-- fallback is the backend that answers instead of the route's own.
local function fallback(key)
    return {
        backend = key,
        label = "custom-default-backend-" .. string.gsub(string.gsub(key, "/$", ""), "/", "-"),
    }
end


-- location_of is the location to jump to, nil if the request is there already.
local function location_of(name)
    return name ~= settings.default_profile and "@" .. name or nil
end


-- label is ingress-nginx's name of a backend, for the log. labels has the earlier ones.
local function label(backend, labels)
    local made = labels[backend]
    if not made then
        made = string.gsub(backend, "/", "-")
        labels[backend] = made
    end
    return made
end


-- identity is a text that identifies the route in its host.
local function identity(packed)
    local kind = packed.exact and "=" or packed.pattern and "~" or packed.slash and "//" or "/"
    return kind .. (packed.exact or packed.prefix or packed.pattern)
end


-- plain_locations is the set of those locations that are of the zero variant (Location in
-- internal/model/profile.go): Lua runs nowhere in them.
local function plain_locations(names)
    local set = {}
    for _, name in ipairs(names) do
        set[name] = type(name) == "string" and string.find(name, "^p_%x+$") ~= nil
    end
    return set
end


-- route makes of a packed route what a request needs. known: see phases_of, labels: see
-- label.
local function route(packed, unit, known, labels)
    local name = unit.locations[packed.location]
    if type(name) ~= "string" then
        error("a route without a location", 0)
    end
    local backend = packed.backend and unit.backends[packed.backend]
    local location = location_of(name)
    local policies = packed.policies or EMPTY
    local phases = phases_of(policies, unit, location, known)
    if (phases.log or phases.error_page) and not location then
        -- The location by path has no log phase, and NGINX does not keep ngx.ctx for
        -- error pages.
        location = "@" .. name
        phases = phases_of(policies, unit, location, known)
    end
    local origin = unit.origins and unit.origins[packed.origin] or EMPTY
    local made = {
        backend = backend,
        backend_label = backend and not packed.default and label(backend, labels) or "upstream-default-backend",
        location = location,
        phases = phases,
        namespace = origin[1],
        ingress = origin[2],
        path = packed.exact or packed.prefix or packed.pattern,
        -- A plain route's requests need its backend, and nothing else while its policies
        -- are idle.
        plain = backend and not packed.passed and not packed.denied and not packed.default and not phases.acting
            and unit.plain_locations[name],
    }
    -- Few routes have these.
    if packed.passed then
        -- The location for requests that the auth service need not check.
        made.passed = location_of(unit.locations[packed.passed])
        made.identity = identity(packed)
    end
    if packed.fallback then
        made.fallback = fallback(unit.backends[packed.fallback])
    end
    for i = 1, #RARE do
        local field = RARE[i]
        if packed[field] then
            made[field] = packed[field]
        end
    end
    if packed.trace then
        -- How requests are traced: see tracing.lua.
        made.trace = unit.traces[packed.trace]
    end
    return made
end


-- own(host, field) -> the host's own table of routes by path
local function own(host, field)
    if host[field] == EMPTY then
        host[field] = {}
    end
    return host[field]
end


-- add_exact puts an exact route where it is found. As in NGINX, one written
-- "/foo/" redirects "/foo" there, unless a route answers for that itself.
local function add_exact(host, packed, compiled)
    local path = packed.exact
    own(host, "exact")[path] = compiled
    if #path > 1 and string_byte(path, #path) == SLASH then
        local bare, itself = string_sub(path, 1, -2), own(host, "itself")
        itself[bare] = itself[bare] or { redirect_to_slash = compiled }
    end
end


-- add_prefix puts a prefix route where it is found. Of "/foo" and "/foo/" the
-- second has what lies below, and the first what is left: "/foo" itself.
local function add_prefix(host, packed, compiled)
    local path = packed.prefix
    if path == "/" then
        host.root = host.root or compiled
        return
    end
    local below, itself = own(host, "below"), own(host, "itself")
    if packed.slash then
        below[path] = compiled
        itself[path] = itself[path] or { redirect_to_slash = compiled }
    else
        below[path] = below[path] or compiled
        itself[path] = compiled
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
    table.sort(list, function(a, b) return a > b end)
    return list
end


-- same_access reports whether two routes allow the same requests: equal policies
-- share one table of phases.
local function same_access(a, b)
    return a.phases == b.phases and a.denied == b.denied and a.satisfy_any == b.satisfy_any
end


-- same_access(a, b) of two routes that find found.
function _M.same_access(a, b)
    return same_access(a.redirect_to_slash or a, b.redirect_to_slash or b)
end


-- tls_of(packed) -> { sessions, phases }
local function tls_of(packed)
    if type(packed.sessions) ~= "string" or #packed.sessions > MAX_SESSIONS then
        error("TLS policies with bad sessions", 0)
    end
    return { sessions = packed.sessions, phases = assert(features.phases(packed.policies)) }
end


-- answering(policies, namespace, path) -> a route without a backend, for requests that these
-- policies answer: see features.lua for policies.
function _M.answering(policies, namespace, path)
    return {
        phases = assert(features.phases(policies)), policies = policies, namespace = namespace, path = path,
        backend_label = "-",
    }
end


-- compile(unit, name) -> host
--   size: the number of its routes
--   server: what runs before a route is found, as a route that leads nowhere; nil if nothing
--     does
--   cleans_paths: access depends on the path that the backend gets: its routes allow
--     different requests, or an auth service gets the path
function _M.compile(unit, name)
    local host = setmetatable({ size = #unit.routes }, meta)
    local known, labels = {}, {}
    unit.plain_locations = plain_locations(unit.locations or EMPTY)
    local first
    local guarded, mixed = false, false
    for _, packed in ipairs(unit.routes) do
        local compiled = route(packed, unit, known, labels)
        access_log.prepare(compiled, packed, name)
        first = first or compiled
        guarded = guarded or compiled.denied or compiled.phases.authenticate ~= nil or compiled.phases.preaccess ~= nil
            or compiled.phases.guards
        mixed = mixed or compiled.identity ~= nil or not same_access(compiled, first)
            -- What guards in the location of a profile may differ there.
            or compiled.phases.guards and compiled.location ~= first.location
        if packed.exact then
            add_exact(host, packed, compiled)
        elseif packed.prefix then
            add_prefix(host, packed, compiled)
        elseif packed.pattern then
            path_patterns.add(host, packed, compiled, name)
        else
            error("a route without a path", 0)
        end
    end
    if unit.tls then
        host.tls = tls_of(unit.tls)
    end
    if unit.server then
        host.server = _M.answering(unit.server, "", "/")
    end
    if guarded and mixed or unit.server then
        host.cleans_paths = true
    end
    if host.below ~= EMPTY then
        host.lengths = lengths(host.below)
    end
    return host
end


-- only() -> the route of all requests, nil if there is none
function methods.only(self)
    return self.size == 1 and not self.server and self.root or nil
end


-- find(path) -> the route, and how long the prefix is by which it was found, nil for an exact
-- path, or an expression | nil, status if there is none. A route may have
-- redirect_to_slash set instead of all else: the route that was written with
-- a slash at its end.
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
                return found, length + 1
            end
        end
    end
    if self.root then
        return self.root, 1
    end
end


return _M
