-- The paths of a host that are regular expressions. They are compared in their order, with the
-- time of their owner's namespace.
local budget = require "headgate.budget"

local _M = {}

local budget_sample = budget.sample
local given_up = budget.given_up
local ngx_re_find = ngx.re.find
local string_lower = string.lower
local string_sub = string.sub

-- A longer path is not compared with expressions: time grows with its length.
local MAX_PATH = 4095

local TOO_LONG = 414
local INTERNAL_ERROR = 500
local UNAVAILABLE = 503


local GIVEN_UP = "until the host changes, requests for other namespaces are not compared with it"

-- The clock after the expression before, nil for the first one of a request.
local last_clock


-- plain_text is a pattern without its "^" if it is plain text, else nil. Most are, and
-- need no regular expression. literalBytes in internal/build/pattern.go must agree
-- with it.
local function plain_text(pattern)
    return string.match(pattern, "^%^([%w/_~!@#%%&=:;,<>'\"`-]*)$")
end


-- add(host, packed, compiled, name) appends a pattern: they are tried in this order.
function _M.add(host, packed, compiled, name)
    local text = plain_text(packed.pattern)
    if not text then
        compiled.pattern = packed.pattern
    end
    local list = host.patterns or { expressions = 0, host_name = name }
    host.patterns = list
    if not text then
        list.expressions = list.expressions + 1
    end
    list[#list + 1] = {
        text = text and string_lower(text),
        pattern = packed.pattern,
        route = compiled,
        ingress = compiled.ingress,
        -- Whose time the expression takes, and how often it failed.
        bucket = budget.of(compiled.namespace or ""),
        strikes = 0,
    }
end


-- matches tries an expression on its owner's time. -> whether it matches | nil, the
-- status that says why this is not known
local function matches(host_name, candidate, path, visit)
    if #path > MAX_PATH then
        return nil, TOO_LONG
    end
    local from, _, err, now = budget_sample(candidate.bucket, visit, ngx_re_find, path, candidate.pattern, "ijo",
        not candidate.tried, last_clock)
    if not now then
        return nil, UNAVAILABLE
    end
    last_clock, candidate.tried = now, true
    if err then
        budget.strike(candidate, "h:" .. host_name, host_name, err, GIVEN_UP)
        return nil, INTERNAL_ERROR
    end
    return from ~= nil
end


-- decide decides for the namespace of the candidate that matches, where expressions
-- before it failed. -> as find
local function decide(list, found, path, visit)
    local bucket = list[found].bucket
    for i = 1, found - 1 do
        local candidate = list[i]
        if candidate.bucket == bucket and candidate.failed_visit == visit then
            if candidate.failed_status then
                return nil, candidate.failed_status
            end
            local matched, status = matches(list.host_name, candidate, path, visit)
            if matched or status then
                return matched and candidate.route or nil, status
            end
        end
    end
    return list[found].route
end


-- find(list, path) -> the first route that matches | nil, status if an
-- expression fails. That ends only requests that would go to a
-- route of the same namespace otherwise, which may require less authentication: no
-- namespace decides over the routes of others.
function _M.find(list, path)
    local lower = string_lower(path)
    local visit = list.expressions > 0 and budget.visit()
    last_clock = nil
    local failed
    for i = 1, #list do
        local candidate = list[i]
        local text = candidate.text
        local matched, status
        if text then
            matched = string_sub(lower, 1, #text) == text
        elseif given_up(candidate) then
            -- decide tries it, if that matters.
            failed = failed or INTERNAL_ERROR
            candidate.failed_visit, candidate.failed_status = visit, nil
        else
            matched, status = matches(list.host_name, candidate, path, visit)
            if status then
                failed = failed or status
                candidate.failed_visit, candidate.failed_status = visit, status
            end
        end
        if matched then
            if failed then
                return decide(list, i, path, visit)
            end
            return candidate.route
        end
    end
    return nil, failed
end


return _M
