-- The aliases that stand for more than one name.
local cjson = require "cjson.safe"

local _M = {}

local ngx_re_find = ngx.re.find
local setmetatable = setmetatable
local string_find = string.find
local string_sub = string.sub

local methods = {}
local meta = { __index = methods }


-- compile(payload) -> patterns | nil, err
function _M.compile(payload)
    local unit, err = cjson.decode(payload)
    if not unit then
        return nil, err
    end
    local all = { heads = unit.heads or {}, tails = unit.tails or {}, regexes = unit.regexes or {} }
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


-- find(name) -> the name that it stands for, nil if there is none | nil, err
function methods.find(self, name)
    local found = longest_head(self.heads, name) or longest_tail(self.tails, name)
    if found then
        return found
    end
    for _, regex in ipairs(self.regexes) do
        local from, _, err = ngx_re_find(name, regex.pattern, "ijo")
        if from then
            return regex
        end
        if err then
            return nil, "match " .. regex.pattern .. ": " .. err
        end
    end
    return nil
end


return _M
