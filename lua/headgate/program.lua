-- Programs: what tenants' snippets do to a request (internal/syntax/snippet/program.go). This module
-- runs their steps, which are the directives of NGINX's rewrite module, and fills in their
-- templates. What else snippets say, their effects, is left to the phases of features.
--
-- A request has one state for all its snippets, request.program:
--   variables  the values of variables that snippets set, by name
--   captures   the groups of the expression that matched last, nil if none did
--   server     the effects of the host's snippet that apply, nil if there are none
--   location   those of the route's snippet, or of the location block, that apply
--   named      the named locations of the host's snippet, by name
--   call       { location, status } while the steps of a call of an auth service run: its effects, and
--              the status that a return directive answers it with
--   internal   set once a rewrite directive has changed the path
--   shared     set while the host's snippet is followed before a route is known, and late once the time
--              of its owner's expressions was up then: the paths of this namespace answer 503, and
--              its steps do not count for those of others
--   error_status  the status that a response keeps while an error page is made, or nil
local client = require "headgate.client"
local lists = require "headgate.list"
local log = require "headgate.log"
local media_types = require "headgate.media_types"
local regex = require "headgate.regex"
local replaced = require "headgate.replaced"
local replacements = require "headgate.replacement"
local requests = require "headgate.request"
local targets = require "headgate.target"
local template = require "headgate.template"
local variables = require "headgate.variables"

local _M = {}

local contains = lists.contains
local ngx_req = ngx.req
local ngx_var = ngx.var
local pairs = pairs
local setmetatable = setmetatable
local string_byte = string.byte
local string_gsub = string.gsub
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub
local tonumber = tonumber
local type = type

local NOT_FOUND = 404
local NOT_ALLOWED = 405
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }
local FLAGS = { redirect = 302, permanent = 301 }

-- The methods that NGINX looks for files by.
local OF_FILES = { GET = true, HEAD = true, POST = true }

-- The length of a value: variables that are made of others could double it with each step.
local MAX_TEXT = 64 * 1024

local EMPTY = {}


-- state(request) -> the state of the request's snippets
function _M.state(request)
    local state = request.program
    if not state then
        state = { variables = {} }
        request.program = state
    end
    return state
end


-- Notes that the request is on a route, with the effects of the route's snippet.
function _M.enter(request, effects)
    local state = _M.state(request)
    state.location = effects
    if request.host.patterns then
        -- The route's path is an expression, which has matched.
        state.captures = nil
    end
    return state
end


local function capture(request, name)
    local captures = request.program.captures or template.groups(request)
    return captures[tonumber(name)] or ""
end


local OWN = variables.of({
    -- A name is the administrator's, or there is no such variable in this nginx.conf yet.
    administrator = function(_, name) return client.defined(name) end,
    own = function(request, name)
        local value = request.program.variables[name]
        if value == nil then
            -- It may be NGINX's until the snippet sets it.
            return variables.read(request, name)
        end
        return value
    end,
    capture = capture,
})


-- fill(text, request) -> the text of a template with all variables that snippets may have
function _M.fill(text, request)
    return text and template.fill(text, request, OWN, MAX_TEXT) or ""
end
local fill = _M.fill


-- filler(own) -> a function like fill, for which the variables in own have other functions
function _M.filler(own)
    setmetatable(own, { __index = OWN })
    return function(text, request)
        return text and template.fill(text, request, own, MAX_TEXT) or ""
    end
end


-- match(request, owner, text, expression, caseless) -> whether an expression matches, on the
-- time of its owner, a namespace; nil if that time is up and the request does not end therefore
-- (see late). Its groups are available from then on. If it can't be decided, the request ends.
function _M.match(request, owner, text, expression, caseless)
    local groups, err, late = regex.match(request, owner, text, expression, caseless and "ijo" or "jo")
    if late and request.program.shared then
        request.program.late = true
        return nil
    elseif err then
        if regex.may_log(owner) then
            log.err("host ", request.name.host, ": match ", expression, ": ", err)
        end
        return requests.finish(request, late and UNAVAILABLE or INTERNAL_ERROR)
    end
    if not groups then
        return false
    end
    local state = request.program
    state.captures = groups
    for name, value in pairs(groups) do
        if type(name) == "string" then
            state.variables[string_lower(name)] = value or ""
        end
    end
    return true
end


local function holds(condition, request, owner)
    local value, is = fill(condition.variable, request), condition.is
    if not is then
        return value ~= "" and value ~= "0"
    elseif is == "=" then
        return value == fill(condition.to, request)
    elseif is == "!=" then
        return value ~= fill(condition.to, request)
    end
    local caseless = string_sub(is, -1) == "*"
    local matches = _M.match(request, owner, value, condition.expression, caseless)
    return matches ~= nil and matches == (string_byte(is) == string_byte("~"))
end


-- redirect ends the request. NGINX writes the target as it is; control characters would end
-- the line.
local function redirect(request, target, status)
    target = string_gsub(target, "[%z\1-\31\127]", replacements.percent)
    return requests.redirect(request, requests.whole(target, request.route.relative, request.host_name), status)
end


-- set_arguments sets the query of the request to the backend.
local function set_arguments(arguments)
    ngx_req.set_uri_args(targets.query(arguments))
end


-- rewrite changes the path, if it matches. -> whether it did
local function rewrite(step, request, owner)
    if not _M.match(request, owner, request.path, step.rewrite) then
        return false
    end
    if FLAGS[step.flag] then
        return redirect(request, replacements.redirect(step, request, fill), FLAGS[step.flag])
    end
    local path, arguments = replacements.path(step, request, fill)
    if path == "" then
        return requests.finish(request, INTERNAL_ERROR)
    end
    local old = ngx_var.args
    if arguments then
        if not step.no_arguments and old and old ~= "" then
            arguments = arguments .. "&" .. old
        end
        set_arguments(arguments)
    elseif step.no_arguments then
        set_arguments("")
    end
    request.path = requests.set_path(path)
    request.program.internal = true
    request.moved = step.flag ~= "break" or nil
    return true
end


-- finish answers as a return directive says.
local function finish(step, request)
    local status, call = step["return"], request.program.call
    if call then
        call.status = status
        return true
    end
    local text = step.has_to and fill(step.to, request) or ""
    if REDIRECTS[status] then
        return redirect(request, text, status)
    elseif not step.has_to and status >= 400 then
        return requests.finish(request, status)
    end
    local state = request.program
    local location, server = state.location, state.server
    local default = location and location.default_type or server and server.default_type
    status = state.error_status or replaced.status() or status
    return requests.answer(request, status, text, media_types.of(request.path) or default)
end


-- What happens when a snippet sets a variable that is not its own.
local SETTERS = {
    args = function(value) set_arguments(value) end,
    limit_rate = function(value)
        local number, unit = string_match(value, "^(%d+)([kKmM]?)$")
        local factor = unit == "" and 1 or string_lower(unit or "") == "k" and 1024 or 1024 * 1024
        requests.set_rate(number and tonumber(number) * factor or 0, 0)
    end,
}


local run


-- step runs one step. -> whether it is the last one
local function run_step(step, request, owner, effects)
    if step.set then
        local value = fill(step.to, request)
        local set = SETTERS[step.set]
        -- A call of an auth service has arguments and a rate of its own.
        if set and not request.program.call then
            set(value)
        end
        request.program.variables[step.set] = value
    elseif step["if"] then
        if holds(step["if"], request, owner) then
            if step.use then
                local state = request.program
                local of = state.call or state
                of.location = effects[step.use + 1]
            end
            return run(step["then"] or EMPTY, request, owner, effects)
        end
    elseif step["return"] then
        return finish(step, request)
    elseif step.rewrite then
        local flag = step.flag
        return rewrite(step, request, owner) and (flag == "last" or flag == "break")
    else
        request.moved = nil
        return true
    end
    return false
end


-- run(steps, request, owner, effects) runs steps, which may end the request or change its path
-- (request.moved then says that it is to be routed again). owner: the namespace whose steps
-- they are. effects: those of their program. -> whether no later ones of the same block apply
function run(steps, request, owner, effects)
    for i = 1, #steps do
        if run_step(steps[i], request, owner, effects) or request.program.late then
            return true
        end
    end
    return false
end
_M.run = run


local function has_method(list, method)
    return contains(list, method) or method == "HEAD" and contains(list, "GET")
end


-- rules_of_method(effects) -> the rules that limit_except has for this request's method, nil if it
-- has nothing to say about it. No steps of the block run for such a method.
function _M.rules_of_method(effects)
    local methods = effects.methods
    if methods and not has_method(methods.except, ngx_req.get_method()) then
        return methods.rules or EMPTY
    end
end


-- missing() -> the status of a location without a handler: there are no files.
function _M.missing()
    return OF_FILES[ngx_req.get_method()] and NOT_FOUND or NOT_ALLOWED
end


-- Ends the request in a named location of the host's snippet, with the effects of the
-- location. Returns if there is no such location.
function _M.finish_in(request, name)
    local state = request.program
    local location = state.named and state.named[name]
    if not location then
        return
    end
    local effects = location.effects or EMPTY
    local own = effects[1]
    state.location = own
    if not (own and _M.rules_of_method(own)) then
        run(location.steps or EMPTY, request, state.owner, effects)
    end
    return requests.finish(request, _M.missing())
end


return _M
