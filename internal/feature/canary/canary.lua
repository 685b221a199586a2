-- Selects the backend of a route with canaries.
--
-- Headers and cookies of all canaries come before all weights: a request that
-- selects a canary goes there, independent of the weights of others.
--
-- If the route's own backend keeps sessions, they come before all that: a session stays at
-- the backend where it is, and the canaries keep sessions in the same way. A canary with
-- affinity-canary-behavior: legacy keeps none.
local access_log = require "headgate.access_log"
local client = require "headgate.client"
local log = require "headgate.log"
local regex = require "headgate.regex"
local units = require "headgate.units"

local _M = {}

local math_random = math.random
local string_byte = string.byte
local string_gsub = string.gsub
local string_match = string.match
local string_sub = string.sub

local SLASH = 47

-- What values of a header or cookie decide: to the canary, or not.
local WORDS = { always = true, never = false }


-- by_header(canary, request) -> true: to the canary, false: not to the canary, nil: the
-- header does not decide
local function by_header(canary, request)
    local when = canary.when
    local value = client.header(when.header)
    if not value then
        return nil
    end
    if when.value then
        return value == when.value or nil
    end
    if when.broken then
        return false
    end
    if when.pattern then
        -- The canary's Service is in the namespace of its Ingress.
        local owner = string_match(canary.backend, "^[^/]*")
        local from, err = regex.find(request, owner, value, when.pattern, "jo")
        if err then
            if regex.may_log(owner) then
                log.err("match the canary pattern ", when.pattern, ": ", err)
            end
            return false
        end
        return from and true or nil
    end
    return WORDS[value]
end


local function decided(canary, request)
    local when = canary.when
    local said
    if when.header then
        said = by_header(canary, request)
    end
    if said == nil and when.cookie then
        said = WORDS[client.cookie(when.cookie)]
    end
    return said
end


-- backend_of(canary, request, sessions) -> the backend of a canary, nil if it has no
-- endpoint. sessions: the picker of the route's own backend if it keeps sessions.
local function backend_of(canary, request, sessions)
    local backend = units.with_endpoints(canary.backend, request.revision)
    if backend and sessions and not canary.when.legacy then
        return sessions:share(backend)
    end
    return backend
end


-- use sends the request to a canary that has an endpoint, and reports whether it
-- has.
local function use(canary, request, sessions)
    local backend = backend_of(canary, request, sessions)
    if not backend then
        return false
    end
    request.backend = backend
    access_log.choose((string_gsub(canary.backend, "/", "-")))
    return true
end


-- is_excepted reports whether a path is one of those, or below one.
local function is_excepted(path, except)
    for i = 1, #except do
        local text = except[i]
        if string_sub(path, 1, #text) == text and (#path == #text or string_byte(path, #text + 1) == SLASH) then
            return true
        end
    end
    return false
end


-- may_use returns what headers and cookies decide for a canary, as decided does;
-- false for paths that the canary does not have.
local function may_use(canary, request)
    if canary.except and is_excepted(request.path, canary.except) then
        return false
    end
    return decided(canary, request)
end


-- sessions_of(request) -> the picker of the route's own backend if it keeps sessions, else
-- nil
local function sessions_of(request)
    local own = units.with_endpoints(request.route.backend, request.revision)
    local picker = own and own.picker
    return picker and picker.share and picker
end


-- stays reports whether the request's session is at one of the backends, and sends it
-- there.
local function stays(canaries, request, sessions)
    if sessions:holds(request) then
        return true
    end
    for i = 1, #canaries do
        local canary = canaries[i]
        if not canary.when.legacy and not (canary.except and is_excepted(request.path, canary.except)) then
            local backend = backend_of(canary, request, sessions)
            if backend and backend.picker:holds(request) then
                return use(canary, request, sessions)
            end
        end
    end
    return false
end


-- canaries: a list of { backend, except, when }
function _M.select_backend(canaries, request)
    local sessions = sessions_of(request)
    if sessions and stays(canaries, request, sessions) then
        return
    end
    -- The first canary that the request selects, else one by weight.
    local draw
    local share = 0
    local drawn
    for i = 1, #canaries do
        local canary = canaries[i]
        local when = canary.when
        local said = may_use(canary, request)
        if said and use(canary, request, sessions) then
            return
        end
        if said == nil and when.share and not drawn then
            draw = draw or math_random()
            share = share + when.share
            if draw < share then
                drawn = canary
            end
        end
    end
    if drawn then
        use(drawn, request, sessions)
    end
end


return _M
