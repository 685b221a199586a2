-- A worker's decoded units of one kind, bounded by the bytes of their packed
-- form.
--
-- Two generations stand for an order by use: what is used moves into the young
-- one, and when that has half of the bytes it becomes the old one, whose rest
-- is dropped. That costs a look-up nothing but the look-up.
local _M = {}

local setmetatable = setmetatable

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
    return nil
end


-- Puts an entry, which has its packed size as `bytes`, in the place of any
-- other of that name.
function methods.put(self, name, entry)
    self:drop(name)
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
end


-- usage() -> bytes, number of units
function methods.usage(self)
    local count = 0
    for _ in pairs(self.young) do
        count = count + 1
    end
    for _ in pairs(self.old) do
        count = count + 1
    end
    return self.young_bytes + self.old_bytes, count
end


return _M
