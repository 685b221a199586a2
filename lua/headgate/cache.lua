-- A worker's decoded units of one kind, bounded by the bytes of their packed
-- form.
--
-- It approximates LRU by two generations: an entry that is used moves into the young
-- one. When that has half of the bytes, it becomes the old one, and the entries of the
-- old one are dropped. So a look-up costs no more than a look-up.
--
-- An entry of more than half of the bytes would drop all others each time. The last
-- one of these is held apart.
local _M = {}

local methods = {}
local meta = { __index = methods }


-- new(bytes) -> cache: bytes bounds the packed size of what is held.
function _M.new(bytes)
    return setmetatable({
        young = {},
        old = {},
        young_bytes = 0,
        old_bytes = 0,
        half = bytes / 2,
        large = nil,
        large_name = nil,
    }, meta)
end


function methods.get(self, name)
    local entry = self.young[name]
    if entry then
        return entry
    end
    entry = self.old[name]
    if entry then
        self.old[name] = nil
        self.old_bytes = self.old_bytes - entry.bytes
        self:put(name, entry)
        return entry
    end
    return name == self.large_name and self.large or nil
end


-- Adds or replaces an entry, which has its packed size as `bytes`.
function methods.put(self, name, entry)
    self:drop(name)
    if entry.bytes > self.half then
        self.large, self.large_name = entry, name
        return
    end
    if self.young_bytes + entry.bytes > self.half and self.young_bytes > 0 then
        self.old, self.old_bytes = self.young, self.young_bytes
        self.young, self.young_bytes = {}, 0
    end
    self.young[name] = entry
    self.young_bytes = self.young_bytes + entry.bytes
end


function methods.drop(self, name)
    local entry = self.young[name]
    if entry then
        self.young[name] = nil
        self.young_bytes = self.young_bytes - entry.bytes
    end
    entry = self.old[name]
    if entry then
        self.old[name] = nil
        self.old_bytes = self.old_bytes - entry.bytes
    end
    if name == self.large_name then
        self.large, self.large_name = nil, nil
    end
end


-- usage() -> bytes, number of units
function methods.usage(self)
    local count = self.large and 1 or 0
    for _ in pairs(self.young) do
        count = count + 1
    end
    for _ in pairs(self.old) do
        count = count + 1
    end
    return self.young_bytes + self.old_bytes + (self.large and self.large.bytes or 0), count
end


return _M
