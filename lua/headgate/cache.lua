-- A worker's decoded units of one kind, bounded by bytes: those of their packed form and what
-- each unit takes beside them.
--
-- Each unit takes part of its owner's share: a namespace, or "" for what belongs to none.
-- When there is too much, the largest shares are cut to one and the same size. An owner
-- that has no more than its fair share, the bytes by the number of owners, loses nothing to
-- others. What was not used since the last cut goes first.
local _M = {}

local pairs = pairs

-- The first values of an entry are the cache's own: its bytes, its owner's share, and
-- whether it was used. What comes behind them, or has a name, is its user's.
local BYTES, SHARE, USED = 1, 2, 3
_M.BYTES = BYTES

-- What is left after a cut, so that there are few: a cut looks at all units.
local LEFT = 7 / 8

local methods = {}
local meta = { __index = methods }


-- new(bytes) -> cache: bytes bounds what is held. One unit may be
-- larger than that: the newest one is held until there is another.
function _M.new(bytes)
    return setmetatable({ entries = {}, count = 0, bytes = 0, limit = bytes, shares = {}, owners = 0 }, meta)
end


function methods.get(self, name)
    local entry = self.entries[name]
    if entry and not entry[USED] then
        entry[USED] = true
    end
    return entry
end


local function share_of(self, owner)
    local share = self.shares[owner]
    if not share then
        share = { owner = owner, bytes = 0 }
        self.shares[owner] = share
        self.owners = self.owners + 1
    end
    return share
end


function methods.drop(self, name)
    local entry = self.entries[name]
    if not entry then
        return
    end
    self.entries[name] = nil
    self.count = self.count - 1
    local share, bytes = entry[SHARE], entry[BYTES]
    self.bytes = self.bytes - bytes
    share.bytes = share.bytes - bytes
    if share.bytes <= 0 then
        self.shares[share.owner] = nil
        self.owners = self.owners - 1
    end
end


-- level is the size to cut shares to, so that they have so many bytes together.
local function level(self, bytes)
    local below, above, now = 0, self.owners, nil
    local before
    repeat
        before = now
        now = (bytes - below) / above
        below, above = 0, 0
        for _, share in pairs(self.shares) do
            if share.bytes <= now then
                below = below + share.bytes
            else
                above = above + 1
            end
        end
    until above == 0 or now == before
    return now
end


-- cut makes room. newest: the entry that stays in any case.
local function cut(self, newest)
    local bytes = level(self, self.limit * LEFT)
    for _ = 1, 2 do
        for name, entry in pairs(self.entries) do
            if entry[SHARE].bytes > bytes and entry ~= newest then
                if entry[USED] then
                    entry[USED] = false
                else
                    self:drop(name)
                end
            end
        end
    end
end


-- Adds or replaces an entry: a table whose first three values are the cache's. bytes:
-- more than 0. owner: a namespace, "" for none.
function methods.put(self, name, entry, bytes, owner)
    self:drop(name)
    local share = share_of(self, owner)
    entry[BYTES], entry[SHARE], entry[USED] = bytes, share, false
    share.bytes = share.bytes + bytes
    self.entries[name] = entry
    self.count = self.count + 1
    self.bytes = self.bytes + bytes
    if self.bytes > self.limit then
        cut(self, entry)
    end
end


-- usage() -> bytes, number of units
function methods.usage(self)
    return self.bytes, self.count
end


return _M
