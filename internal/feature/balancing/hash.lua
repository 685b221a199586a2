-- Consistent hashing: requests with the same key go to the same endpoint, or to a random one of
-- the same group of endpoints.
local cjson = require "cjson.safe"
local ketama = require "headgate.picker.ketama"
local list = require "headgate.list"
local template = require "headgate.template"

local _M = {}

local fill = template.fill
local math_ceil = math.ceil
local math_max = math.max
local math_min = math.min
local math_random = math.random
local setmetatable = setmetatable

local methods = {}
local meta = { __index = methods }


-- groups_of(count, size) -> lists of indexes of equal size; the last one is filled up from the
-- first endpoints. A tenant may ask for groups of many thousands: none has an endpoint twice.
local function groups_of(count, size)
    size = math_max(1, math_min(size, count))
    local groups = {}
    for g = 1, math_ceil(count / size) do
        local group = {}
        for i = 1, size do
            group[i] = ((g - 1) * size + i - 1) % count + 1
        end
        groups[g] = group
    end
    return groups
end


function _M.new(settings, backend, before)
    local key, err = cjson.decode(settings.key)
    if not key then
        error(err, 0)
    end
    local self = setmetatable({ backend = backend, key = key }, meta)
    if settings.subset then
        self.groups = groups_of(backend.count, settings.subset)
        local names = {}
        for g = 1, #self.groups do
            names[g] = "group" .. g
        end
        self.names = names
    else
        self.names = backend:endpoints()
    end
    -- It is made here, where its time is charged to the backend's owner.
    self.ring = before and list.equal(before.names, self.names) and before.ring or ketama.new(self.names)
    self.weight = ketama.weight(self.names)
    return self
end


-- any(group, avoid) -> a random index of the group that is not to be avoided, nil if all are
local function any(group, avoid)
    local size = #group
    local start = math_random(size)
    for i = 1, size do
        local index = group[(start + i - 2) % size + 1]
        if not (avoid and avoid[index]) then
            return index
        end
    end
    return nil
end


-- A retry goes on along the ring to the next endpoint that is not to be avoided.
function methods.pick(self, request, avoid)
    local ring = self.ring
    local key = fill(self.key, request)
    local groups = self.groups
    if not avoid then
        local found = ring:find(key)
        return groups and any(groups[found]) or found
    end
    local index = ring:find(key, function(found)
        if groups then
            return any(groups[found], avoid)
        end
        return not avoid[found] and found or nil
    end)
    if not index then
        index = ring:find(key)
        index = groups and any(groups[index]) or index
    end
    return index
end


return _M
