-- The aliases that stand for more than one name.
local log = require "headgate.log"
local regexes = require "headgate.regex"

local _M = {}

local clock = regexes.clock
local ngx_re_find = ngx.re.find
local string_find = string.find
local string_sub = string.sub

-- How many names are cached with their results, and the maximum length of a name,
-- which is that of DNS.
local MAX_REMEMBERED = 10000
local LONGEST = 253

-- The time limit for all expressions of one name together, in seconds of the worker's
-- time; and how often one may exceed it, or the match limit, before it is no longer
-- tried: clients can always send new names.
local BUDGET = 0.1
local SLOW = 0.002
local MAX_STRIKES = 20

local methods = {}
local meta = { __index = methods }


-- compile(unit) -> patterns
function _M.compile(unit)
    local all = {
        leading_wildcards = unit.leading_wildcards or {},
        trailing_wildcards = unit.trailing_wildcards or {}, regexes = unit.regexes or {},
        remembered = {}, count = 0,
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


-- strike counts the failures of an expression. The log gets two lines for it, not one
-- for each name.
local function strike(regex, err)
    regex.strikes = regex.strikes + 1
    if regex.strikes == 1 then
        log.err("host ", regex.host, ": match the alias ", regex.name, ": ", err or "it takes too long")
    elseif regex.strikes == MAX_STRIKES then
        log.err("host ", regex.host, ": the alias ", regex.name, " is disabled until aliases change")
    end
end


-- first_regex skips an expression that exceeds the match limit: only its own host is
-- affected. -> the name | nil, whether all together took too long
local function first_regex(list, name)
    local started = #list > 0 and clock()
    local before = started
    for _, regex in ipairs(list) do
        if regex.strikes < MAX_STRIKES then
            local from, _, err = ngx_re_find(name, regex.pattern, "ijo")
            if from then
                return regex
            end
            local now = clock()
            if err or now - before > SLOW then
                strike(regex, err)
            end
            if now - started > BUDGET then
                return nil, true
            end
            before = now
        end
    end
    return nil
end


-- find(name) -> the name unit of the first pattern that matches, nil if there is none.
-- Results are cached, also for unknown names.
function methods.find(self, name)
    if #name > LONGEST then
        return nil
    end
    local found = self.remembered[name]
    if found == nil then
        local unknown
        found = longest_leading(self.leading_wildcards, name)
            or longest_trailing(self.trailing_wildcards, name)
        if not found then
            found, unknown = first_regex(self.regexes, name)
        end
        if unknown then
            return nil
        end
        found = found or false
        if self.count == MAX_REMEMBERED then
            self.remembered, self.count = {}, 0
        end
        self.remembered[name] = found
        self.count = self.count + 1
    end
    return found or nil
end


return _M
