-- A ring of consistent hashing: each node has 160 points on it, and a key belongs to the node of
-- the next point.
--
-- The points are those that the chash balancer of OpenResty gives to nodes of weight 1, and so
-- does the place of a key: cookies that ingress-nginx set for a session lead to the same
-- endpoint. A point is the CRC-32 of the node's name followed by the point before it, in
-- little-endian bytes.
local bit = require "bit"
local ffi = require "ffi"

local _M = {}

local band, bnot, bxor, rshift = bit.band, bit.bnot, bit.bxor, bit.rshift
local ffi_fill = ffi.fill
local ffi_new = ffi.new
local math_floor = math.floor
local math_min = math.min
local ngx_crc32_long = ngx.crc32_long
local setmetatable = setmetatable
local string_byte = string.byte

local POINTS = 160
local CIRCLE = 2 ^ 32

-- CRC-32 as in zlib, by bytes.
local crc_table = ffi_new("int32_t[256]")
for byte = 0, 255 do
    local crc = byte
    for _ = 1, 8 do
        crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xedb88320) or rshift(crc, 1)
    end
    crc_table[byte] = crc
end

local methods = {}
local meta = { __index = methods }


local function add_byte(crc, byte)
    return bxor(crc_table[band(bxor(crc, byte), 0xff)], rshift(crc, 8))
end


-- The state of the CRC behind a text, before its last inversion.
local function begin(text)
    local crc = -1
    for i = 1, #text do
        crc = add_byte(crc, string_byte(text, i))
    end
    return crc
end


-- sort orders points by hash, and gives their nodes in the same order: by eight bits at a time,
-- since comparing would keep the worker too long. counts has 256 elements.
local function sort(hashes, nodes, count)
    local other_hashes, other_nodes = ffi_new("uint32_t[?]", count), ffi_new("uint32_t[?]", count)
    local counts = ffi_new("uint32_t[257]")
    for shift = 0, 24, 8 do
        ffi_fill(counts, 257 * 4)
        for i = 0, count - 1 do
            local digit = band(rshift(hashes[i], shift), 0xff) + 1
            counts[digit] = counts[digit] + 1
        end
        for digit = 1, 256 do
            counts[digit] = counts[digit] + counts[digit - 1]
        end
        for i = 0, count - 1 do
            local digit = band(rshift(hashes[i], shift), 0xff)
            local place = counts[digit]
            counts[digit] = place + 1
            other_hashes[place], other_nodes[place] = hashes[i], nodes[i]
        end
        hashes, other_hashes = other_hashes, hashes
        nodes, other_nodes = other_nodes, nodes
    end
    return hashes, nodes
end


-- new(names) -> the ring of these nodes, which may be none: find must not be called then.
function _M.new(names)
    local count = #names * POINTS
    local hashes, nodes = ffi_new("uint32_t[?]", count), ffi_new("uint32_t[?]", count)
    local at = 0
    for node = 1, #names do
        local base = begin(names[node])
        local point = 0
        for _ = 1, POINTS do
            local crc = base
            crc = add_byte(crc, band(point, 0xff))
            crc = add_byte(crc, band(rshift(point, 8), 0xff))
            crc = add_byte(crc, band(rshift(point, 16), 0xff))
            crc = add_byte(crc, rshift(point, 24))
            point = bnot(crc)
            hashes[at], nodes[at] = point % CIRCLE, node
            at = at + 1
        end
    end
    hashes, nodes = sort(hashes, nodes, count)
    return setmetatable({ hashes = hashes, nodes = nodes, count = count }, meta)
end


-- The index of the first point from a hash on.
local function first_from(self, hash)
    local hashes, last = self.hashes, self.count - 1
    -- Points are spread evenly, so the place can be guessed.
    local at = math_min(math_floor(hash / (CIRCLE / self.count)), last)
    if hashes[at] >= hash then
        while at > 0 and hashes[at - 1] >= hash do
            at = at - 1
        end
        return at
    end
    while at < last do
        at = at + 1
        if hashes[at] >= hash then
            return at
        end
    end
    return 0
end


-- find(key) -> the index of the key's node.
-- find(key, accept) -> what accept(index) returns for the first node along the ring for which
-- it is not nil; nil if there is none.
function methods.find(self, key, accept)
    local at = first_from(self, ngx_crc32_long(key))
    if not accept then
        return self.nodes[at]
    end
    local seen = {}
    for i = 0, self.count - 1 do
        local node = self.nodes[(at + i) % self.count]
        if not seen[node] then
            seen[node] = true
            local result = accept(node)
            if result ~= nil then
                return result
            end
        end
    end
    return nil
end


-- weight is what the ring of these names adds to the packed bytes that a cache counts, of which
-- each stands for about five.
function _M.weight(names)
    return #names * POINTS * 8 / 5
end


return _M
