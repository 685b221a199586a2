-- The aliases that stand for more than one name.
local budget = require "headgate.budget"

local _M = {}

local budget_try = budget.try
local clock = budget.clock
local given_up = budget.given_up
local ngx_now = ngx.now
local ngx_re_find = ngx.re.find
local string_find = string.find
local string_sub = string.sub

-- How many names are cached with their results, and the maximum length of a name,
-- which is that of DNS.
local MAX_REMEMBERED = 10000
local LONGEST = 253

-- For how many seconds a name is taken for unknown after expressions that were not
-- tried, because their owners' time was up.
local SKIPPED = 1

-- An expression that takes more seconds of the worker's time fails, as one that exceeds
-- the match limit: clients can always send new names.
local SLOW = 0.002

-- The key of the unit, and what happens to an expression that failed too often.
local UNIT = "p:patterns"
local GIVEN_UP = "the alias is disabled until aliases change"

local methods = {}
local meta = { __index = methods }


-- compile(unit) -> patterns
function _M.compile(unit)
    local all = {
        leading_wildcards = unit.leading_wildcards or {},
        trailing_wildcards = unit.trailing_wildcards or {}, regexes = unit.regexes or {},
        remembered = {}, skipped = {}, count = 0,
    }
    -- These names can't be sent by clients: see names.with_tls.
    for text, name in pairs(all.leading_wildcards) do
        name.name = "*" .. text
    end
    for text, name in pairs(all.trailing_wildcards) do
        name.name = text .. "*"
    end
    for _, name in ipairs(all.regexes) do
        name.name = "~" .. name.pattern
        name.strikes = 0
        name.bucket = budget.of(name.namespace or "")
    end
    return setmetatable(all, meta)
end


-- longest_leading finds the name in ".b.c", ".c" for "a.b.c", in this order.
local function longest_leading(wildcards, name)
    local dot = string_find(name, ".", 2, true)
    while dot do
        local found = wildcards[string_sub(name, dot)]
        if found then
            return found
        end
        dot = string_find(name, ".", dot + 1, true)
    end
    return nil
end


-- longest_trailing finds the name in "a.b.", "a." for "a.b.c", in this order.
local function longest_trailing(wildcards, name)
    local found
    local dot = string_find(name, ".", 2, true)
    while dot do
        found = wildcards[string_sub(name, 1, dot)] or found
        dot = string_find(name, ".", dot + 1, true)
    end
    return found
end


-- first_regex skips an expression that exceeds the match limit, or whose owner has no
-- time left: only its own host is affected. -> the name | nil, whether an expression
-- was skipped for want of time
local function first_regex(list, name)
    local skipped = false
    local visit = #list > 0 and budget.visit()
    local before
    for _, regex in ipairs(list) do
        if not given_up(regex) then
            before = before or clock()
            local from, _, err, now = budget_try(regex.bucket, visit, ngx_re_find, name, regex.pattern, "ijo",
                not regex.tried, before)
            if now then
                if err or regex.tried and now - before > SLOW then
                    budget.strike(regex, UNIT, regex.host, err or "it takes too long", GIVEN_UP)
                end
                before, regex.tried = now, true
                if from then
                    return regex
                end
            else
                skipped = true
            end
        end
    end
    return nil, skipped
end


-- remember keeps a result: a name, or false for a name that is unknown.
local function remember(self, name, found, skipped)
    if self.count >= MAX_REMEMBERED then
        self.remembered, self.skipped, self.count = {}, {}, 0
    end
    self.count = self.count + 1
    if skipped then
        self.skipped[name] = ngx_now() + SKIPPED
    else
        self.remembered[name] = found
        self.skipped[name] = nil
    end
end


-- find(name) -> the name unit of the first pattern that matches, nil if there is none.
-- Results are cached, also for unknown names.
function methods.find(self, name)
    if #name > LONGEST then
        return nil
    end
    local found = self.remembered[name]
    if found == nil then
        local until_then = self.skipped[name]
        if until_then and ngx_now() < until_then then
            return nil
        end
        local skipped
        found = longest_leading(self.leading_wildcards, name)
            or longest_trailing(self.trailing_wildcards, name)
        if not found then
            found, skipped = first_regex(self.regexes, name)
        end
        remember(self, name, found or false, skipped)
    end
    return found or nil
end


return _M
