-- Which of a route's backends is asked.
--
-- What headers and cookies say goes before all shares, over all canaries of
-- the route: who asks for one by name gets it, whatever the others' shares are.
local client = require "headgate.client"
local log = require "headgate.log"
local regex = require "headgate.regex"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}

local math_random = math.random
local string_byte = string.byte
local string_gsub = string.gsub
local string_sub = string.sub

local SLASH = 47
local ALWAYS, NEVER = "always", "never"


-- by_word is what a value says by itself: true, false, or nil for anything else
local function by_word(value)
    if value == ALWAYS then
        return true
    end
    if value == NEVER then
        return false
    end
    return nil
end


-- by_header(when, request) -> true: to the canary, false: not to the canary, nil: the
-- header does not decide
local function by_header(when, request)
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
        local from, err = regex.find(request, value, when.pattern, "jo")
        if err then
            log.err("match the canary pattern ", when.pattern, ": ", err)
            return false
        end
        return from and true or nil
    end
    return by_word(value)
end


local function by_cookie(when)
    return by_word(client.cookie(when.cookie))
end


local function decided(when, request)
    local said
    if when.header then
        said = by_header(when, request)
    end
    if said == nil and when.cookie then
        said = by_cookie(when)
    end
    return said
end


-- ask has the request go to an alternative, if that has an endpoint. Whether
-- it does is the result.
local function ask(alternative, request)
    local backend = units.with_endpoints(alternative.backend, request.revision)
    if not backend then
        return false
    end
    request.backend = backend
    requests.set_alternative_label((string_gsub(alternative.backend, "/", "-")))
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


-- may_be reports whether an alternative can be asked at all, and what headers
-- and cookies say of it: see decided.
local function may_be(alternative, request)
    if alternative.except and is_excepted(request.path, alternative.except) then
        return false
    end
    return decided(alternative.when, request)
end


-- alternatives: a list of { backend, except, when }
function _M.select_backend(alternatives, request)
    -- The first that somebody asks for, and of the others those that may have
    -- a share.
    local draw
    local share = 0
    local drawn
    for i = 1, #alternatives do
        local alternative = alternatives[i]
        local when = alternative.when
        local said = may_be(alternative, request)
        if said and ask(alternative, request) then
            return
        end
        if said == nil and when.share and not drawn then
            draw = draw or math_random()
            share = share + when.share
            if draw < share then
                drawn = alternative
            end
        end
    end
    if drawn then
        ask(drawn, request)
    end
end


return _M
