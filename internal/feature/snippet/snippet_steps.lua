-- Runs the steps of tenants' snippets, and finds the location blocks that a server-snippet
-- has. What snippets say besides is in the features beside this one.
local hosts = require "headgate.host"
local program = require "headgate.program"
local replaced = require "headgate.replaced"
local requests = require "headgate.request"

local _M = {}

local ipairs = ipairs
local ngx_req = ngx.req
local ngx_var = ngx.var
local string_sub = string.sub

local NOT_FOUND = 404
local UNAVAILABLE = 503

local EMPTY = {}


-- compare_lengths sorts locations by their paths, the longest first.
local function compare_lengths(a, b)
    return #a.path > #b.path
end


-- index_of(locations) -> { exact, prefixes, expressions }: exact is by path, the others are
-- lists in the order in which they are tried
local function index_of(locations)
    local index = { exact = {}, prefixes = {}, expressions = {} }
    for _, location in ipairs(locations) do
        local match = location.match
        if match == "=" then
            index.exact[location.path] = location
        elseif match == "~" or match == "~*" then
            index.expressions[#index.expressions + 1] = location
        elseif match ~= "@" then
            index.prefixes[#index.prefixes + 1] = location
        end
    end
    table.sort(index.prefixes, compare_lengths)
    return index
end


local function longest(prefixes, path)
    for i = 1, #prefixes do
        local one = prefixes[i]
        if string_sub(path, 1, #one.path) == one.path then
            return one
        end
    end
end


-- first_match is the first location whose expression matches the path.
local function first_match(expressions, request, path, owner)
    for i = 1, #expressions do
        local one = expressions[i]
        if program.match(request, owner, path, one.path, one.match == "~*") then
            return one
        end
    end
end


-- index_in is the index of locations, which is made once and kept in the table of a route.
local function index_in(route, locations)
    local indexes = route.indexes or {}
    route.indexes = indexes
    local index = indexes[locations]
    if not index then
        index = index_of(locations)
        indexes[locations] = index
    end
    return index
end


-- search finds the location for a path as NGINX does: with = first, then the longest prefix,
-- unless an expression matches and the prefix has no ^~; and so on in that location. route: a
-- table to keep indexes in. length: that of the longest prefix that is not among these locations.
-- -> the location, nil if there is none, and whether it comes before expressions that are not
-- among them
local function search(locations, route, request, path, owner, length)
    local index = index_in(route, locations)
    if index.exact[path] then
        return index.exact[path], true
    end
    local found, final = longest(index.prefixes, path), false
    if found and #found.path <= length then
        found = nil
    elseif found then
        final = found.match == "^~"
        if found.locations then
            local inner, decided = search(found.locations, route, request, path, owner, 0)
            if decided then
                return inner, true
            end
            found = inner or found
        end
    end
    if not final then
        local matched = first_match(index.expressions, request, path, owner)
        if matched then
            local inner = matched.locations and search(matched.locations, route, request, path, owner, 0)
            return inner or matched, true
        end
    end
    return found, final
end


-- A policy with `server` is that of a host, for all of its requests; one with `location` that of a
-- route, or of requests for a location block.
function _M.applies(policy, phase)
    local server = policy.server
    if phase == "before_route" then
        return server ~= nil
    elseif phase == "find_route" then
        return server ~= nil and server.locations ~= nil
    end
    return (phase == "begin" or phase == "rewrite") and policy.location ~= nil
end


-- named_of(server) -> its named locations, by name
local function named_of(server)
    local named = {}
    for _, location in ipairs(server.locations or EMPTY) do
        if location.match == "@" then
            named[location.path] = location
        end
    end
    return named
end


-- policy: { server, namespace }
function _M.before_route(policy, request)
    local server = policy.server
    local state = program.state(request)
    local route = request.host.server
    route.named = route.named or named_of(server)
    state.named, state.owner = route.named, policy.namespace
    state.server = server.effects and server.effects[1]
    local path, arguments = request.path, ngx_var.args
    state.shared = true
    program.run(server.steps or EMPTY, request, policy.namespace, EMPTY)
    state.shared = nil
    if state.late then
        request.path = requests.set_path(path)
        ngx_req.set_uri_args(arguments or "")
    end
    request.moved = nil
end


-- route_of(location, request, namespace) -> the route of requests for a location block
local function route_of(location, request, namespace)
    local server = request.host.server
    local routes = server.routes or {}
    server.routes = routes
    local route = routes[location]
    if not route then
        local policies = {}
        for i, policy in ipairs(server.policies) do
            policies[i] = policy
        end
        policies[#policies + 1] = { "snippet_steps", { location = location, answers = false } }
        route = hosts.answering(policies, namespace, location.path)
        routes[location] = route
    end
    return route
end


-- policy: { server, namespace }
function _M.find_route(policy, request, path, route, second)
    local patterns = request.host.patterns
    local state = program.state(request)
    local captures = state.captures
    if route and not second and not patterns then
        -- An exact path, which no location block has: see conflict.go.
        return route
    end
    state.shared = true
    local location, wins = search(policy.server.locations, request.host.server, request, path, policy.namespace,
        not patterns and second or 0)
    state.shared = nil
    if path ~= request.path then
        -- It was only asked what else the path could mean.
        state.captures = captures
    end
    if not location or patterns and not wins and (route or second) then
        return route, not route and state.late and UNAVAILABLE or second
    end
    return route_of(location, request, policy.namespace)
end


-- policy: { location } of a route, or of a location block
function _M.begin(policy, request)
    local effects = policy.location.effects
    program.enter(request, effects and effects[1])
end


-- policy: { location, answers }: answers is false if nothing answers in the location but its steps
function _M.rewrite(policy, request)
    local location, owner = policy.location, request.route.namespace
    local inner = location.locations
        and search(location.locations, request.route, request, request.path, owner, 0)
    if inner then
        location = inner
        program.enter(request, inner.effects and inner.effects[1])
    end
    if location.internal and not program.state(request).internal and not replaced.is_page() then
        return requests.finish(request, NOT_FOUND)
    end
    local effects = location.effects or EMPTY
    local breaks = not (effects[1] and program.rules_of_method(effects[1]))
        and program.run(location.steps or EMPTY, request, owner, effects)
    request.breaks = breaks or inner ~= nil or nil
    if not request.moved and (inner or policy.answers == false) then
        request.unanswered = program.missing()
    end
end


return _M
