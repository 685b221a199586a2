-- Regular expressions of tenants, for text of clients and backends, on their owners'
-- time: see budget.lua. The match limit bounds each one.
local budget = require "headgate.budget"

local _M = {}

local budget_sample = budget.sample
local ngx_re_find = ngx.re.find
local ngx_re_match = ngx.re.match

-- on_time calls ngx.re's find or match on an owner's time.
local function on_time(run, request, owner, text, pattern, options)
    local bucket = budget.of(owner or "")
    local visit = request.regex_visit
    if not visit then
        visit = budget.visit()
        request.regex_visit = visit
    end
    local found, to, err, now = budget_sample(bucket, visit, run, text, pattern, options)
    return found, to, err, not now
end


-- find(request, owner, text, pattern, options) -> where the pattern matches, nil if it
-- does not | nil, err, whether the owner's time is up
function _M.find(request, owner, text, pattern, options)
    local from, _, err, late = on_time(ngx_re_find, request, owner, text, pattern, options)
    return from, err, late
end


-- match(request, owner, text, pattern, options) -> the groups, nil if the pattern does
-- not match | nil, err, whether the owner's time is up
function _M.match(request, owner, text, pattern, options)
    local groups, err, refused, late = on_time(ngx_re_match, request, owner, text, pattern, options)
    return groups, err or refused, late
end


-- Reports whether the log may have a line about a failing expression: not more than
-- one a minute for each owner.
function _M.may_log(owner)
    return budget.may_log(budget.of(owner or ""))
end


return _M
