-- The aliases that stand for more than one name.
local cjson = require "cjson.safe"
local log = require "headgate.log"

local _M = {}

local ngx_re_find = ngx.re.find
local setmetatable = setmetatable
local string_find = string.find
local string_sub = string.sub

-- How many names are remembered with what they were found to be, and how long
-- such a name may be: no name in DNS is longer.
local MOST_REMEMBERED = 10000
local LONGEST_REMEMBERED = 253

local methods = {}
local meta = { __index = methods }


-- compile(payload) -> patterns | nil, err
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local all = {
        heads = unit.heads or {}, tails = unit.tails or {}, regexes = unit.regexes or {},
        remembered = {}, count = 0,
    }
    -- Named by what no client can ask for: see names.secured.
    for text, name in pairs(all.heads) do
        name.name = "*" .. text
    end
    for text, name in pairs(all.tails) do
        name.name = text .. "*"
    end
    for _, name in ipairs(all.regexes) do
        name.name = "~" .. name.pattern
    end
    return setmetatable(all, meta)
end


-- longest_head finds the name in ".b.c", ".c" for "a.b.c", in this order.
local function longest_head(heads, name)
    local dot = string_find(name, ".", 2, true)
    while dot do
        local found = heads[string_sub(name, dot)]
        if found then
            return found
        end
        dot = string_find(name, ".", dot + 1, true)
    end
    return nil
end


-- longest_tail finds the name in "a.b.", "a." for "a.b.c", in this order.
local function longest_tail(tails, name)
    local found
    local dot = string_find(name, ".", 2, true)
    while dot do
        found = tails[string_sub(name, 1, dot)] or found
        dot = string_find(name, ".", dot + 1, true)
    end
    return found
end


-- first_regex passes over an expression that gives up: only who wrote it is to
-- lose. The log gets one line for it, not one for each name.
local function first_regex(regexes, name)
    for _, regex in ipairs(regexes) do
        local from, _, err = ngx_re_find(name, regex.pattern, "ijo")
        if from then
            return regex
        end
        if err and not regex.told then
            regex.told = true
            log.err("host ", regex.host, ": match the alias ", regex.name, ": ", err)
        end
    end
    return nil
end


-- find(name) -> the name that it stands for, nil if there is none. What was
-- found is remembered: unknown names that come again cost no search.
function methods.find(self, name)
    local found = self.remembered[name]
    if found == nil then
        found = longest_head(self.heads, name) or longest_tail(self.tails, name)
            or first_regex(self.regexes, name) or false
        if #name <= LONGEST_REMEMBERED then
            if self.count == MOST_REMEMBERED then
                self.remembered, self.count = {}, 0
            end
            self.remembered[name] = found
            self.count = self.count + 1
        end
    end
    return found or nil
end


return _M
