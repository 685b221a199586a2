-- Runs the steps of tenants' snippets, and finds the location blocks that a server-snippet
-- has. What snippets say besides is in the features beside this one.
local hosts = require "headgate.host"
local program = require "headgate.program"
local requests = require "headgate.request"

local _M = {}

local ipairs = ipairs
local string_sub = string.sub

local NOT_FOUND = 404

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
    local index = route.index
    if not index then
        index = index_of(locations)
        route.index = index
    end
    return index
end


-- search finds the location for a path as NGINX does: with = first, then the longest prefix,
-- unless an expression matches and the prefix has no ^~. length: that of the longest prefix that is not
-- among these locations. -> the location, nil if there is none, and whether it comes before
-- expressions that are not among them
local function search(index, request, path, owner, length)
    if index.exact[path] then
        return index.exact[path], true
    end
    local prefix = longest(index.prefixes, path)
    if prefix and #prefix.path <= length then
        prefix = nil
    end
    if prefix and prefix.match == "^~" then
        return prefix, true
    end
    local matched = first_match(index.expressions, request, path, owner)
    return matched or prefix, matched ~= nil
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
    program.run(server.steps or EMPTY, request, policy.namespace, EMPTY)
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
        policies[#policies + 1] = { "snippet", { location = location, answers = false } }
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
    local index = index_in(request.host.server, policy.server.locations)
    local location, wins = search(index, request, path, policy.namespace, not patterns and second or 0)
    if path ~= request.path then
        -- It was only asked what else the path could mean.
        state.captures = captures
    end
    if not location or patterns and not wins and (route or second) then
        return route, second
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
        and search(index_in(request.route, location.locations), request, request.path, owner, 0)
    if inner then
        location = inner
        program.enter(request, inner.effects and inner.effects[1])
    end
    if location.internal and not program.state(request).internal then
        return requests.finish(request, NOT_FOUND)
    end
    local breaks = program.run(location.steps or EMPTY, request, owner, location.effects or EMPTY)
    request.breaks = breaks or inner ~= nil or nil
    if not request.moved and (inner or policy.answers == false) then
        request.unanswered = program.missing()
    end
end


return _M
