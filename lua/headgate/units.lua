-- The units that this worker has decoded: when first needed, and again when their
-- version has changed. Both the memory and the time that this takes are their owners'.
local budget = require "headgate.budget"
local cache = require "headgate.cache"
local cjson = require "cjson.safe"
local log = require "headgate.log"
local memory = require "headgate.memory"
local settings = require "headgate.settings"

local _M = {}

local clock = budget.clock
local tonumber = tonumber

local MEGABYTE = 1024 * 1024

-- An entry is a list, which takes half the memory of a table with fields. Behind those of
-- cache.lua are the decoded unit, false if this worker can't use the one that there is; the
-- revision at which it was looked at; its key; the version of the value, false without one;
-- and the newest version that was looked at.
local VALUE, CHECKED, KEY, HELD, VERSION = 4, 5, 6, 7, 8

-- In seconds: what a unit may take to be decoded without being charged to its owner. It
-- is less than a TLS handshake takes, which any client can ask for, and more than that
-- of nearly all hosts. Else a cluster with many hosts of one namespace could be refused
-- to a new worker.
local FREE = 0.0003
-- The same for certificates: parsing the key and the chain takes about as long as
-- the handshake that needs them.
local FREE_CERTIFICATE = 0.0015
-- In bytes: what is decoded even if its owner's time is up, such as names. It takes less
-- than the request itself.
local SMALL = 1024

-- compile makes of a unit, which is JSON, what requests need, and raises an error if it
-- can't. Decoded units take about five times what the caches count, and those with many short
-- paths up to nine times; before the collector runs, twice that. The kinds and their letters
-- are those of internal/unit/kind.go: a test compares them.
--   free: instead of FREE
--   beside: what the cache counts beside the packed bytes, since small units take as much
--     for their tables as for what is in them, and certificates are OpenSSL's as well
--   follows: whether a newer version of what this worker has is decoded even if its
--     owner's time is up: changes of endpoints are urgent
local kinds = {
    host = { letter = "h:", compile = require("headgate.host").compile, cache = cache.new(5 * MEGABYTE), beside = 50 },
    name = { letter = "n:", compile = require("headgate.name").compile, cache = cache.new(2 * MEGABYTE), beside = 50 },
    backend = {
        letter = "b:", compile = require("headgate.backend").compile, cache = cache.new(3 * MEGABYTE), beside = 100,
        follows = true,
    },
    certificate = {
        letter = "c:", compile = require("headgate.certificate_unit").compile, cache = cache.new(4 * MEGABYTE),
        beside = 600, free = FREE_CERTIFICATE,
    },
    ocsp = { letter = "s:", compile = require("headgate.ocsp_unit").compile, cache = cache.new(2 * MEGABYTE) },
    -- Bytes in a format of their feature.
    content = { letter = "t:", cache = cache.new(4 * MEGABYTE) },
    patterns = { letter = "p:", compile = require("headgate.patterns").compile, cache = cache.new(MEGABYTE) },
    globals = { letter = "g:", compile = require("headgate.globals").compile, cache = cache.new(MEGABYTE) },
}

-- What this worker could not decode, by key.
local broken = {}
-- How many units it has decoded so far.
local decoded = 0


-- The key under which the shared memory has a unit.
function _M.key(kind, name)
    local of = kinds[kind]
    return of and of.letter .. name
end


-- join makes what memory.version gives. Most versions are the first of their row, which
-- is left out then.
function _M.join(needs, hash, row, size, owner)
    return needs .. " " .. hash .. " " .. (row == hash and "" or row) .. " " .. size .. " " .. owner
end


-- split(version) -> needs, hash, row, size, owner
function _M.split(version)
    local needs, hash, row, size, owner = string.match(version, "^(%d+) (%x+) (%x*) (%d+) (.*)$")
    return tonumber(needs), hash, row ~= "" and row or hash, tonumber(size), owner
end


local function compile(kind, payload, name, before)
    local make = kinds[kind].compile
    if not make then
        return payload
    end
    local unit, err = cjson.decode(payload)
    return make(unit or error(err, 0), name, before)
end


-- same_guards reports whether two versions, as memory.version gives them, have the same guards.
local function same_guards(a, b)
    local _, _, row = _M.split(a)
    local _, _, other = _M.split(b)
    return row == other
end


-- What a cache counts for a unit.
local function bytes_of(kind, key, payload, value)
    return #payload + #key + (kinds[kind].beside or 0) + (type(value) == "table" and value.weight or 0)
end


local function new_entry(key, value, held)
    return { 0, false, false, value, 0, key, held, false }
end


-- decode makes an entry of a payload, nil if this worker can't use it. before:
-- what the worker has of an older one. began: the clock before the payload was read.
-- -> entry, what its cache counts
local function decode(kind, name, key, payload, version, before, began)
    local needs, hash, _, _, owner = _M.split(version)
    if needs > settings.generation then
        return nil
    end
    local ok, value = pcall(compile, kind, payload, name, before)
    decoded = decoded + 1
    if owner ~= "" then
        budget.charge_decoding(owner, clock() - began - (kinds[kind].free or FREE))
    end
    if not ok then
        log.err(kind, " ", name, " can't be decoded: ", value)
        broken[key] = { kind = kind, name = name, version = hash, error = value }
        return nil
    end
    broken[key] = nil
    return new_entry(key, value, version), bytes_of(kind, key, payload, value)
end


-- older is the entry of a worker that can't use a version: it stays with what it has.
-- A unit that needs a newer configuration may have new guards, so it must be known that
-- what the worker has has the same ones. Else requests are answered 503. -> entry, what its
-- cache counts
local function older(key, entry, version)
    if not (entry and entry[VALUE]) or _M.split(version) > settings.generation
        and not same_guards(entry[HELD], version) then
        return new_entry(key, false, false), #key
    end
    return new_entry(key, entry[VALUE], entry[HELD]), entry[cache.BYTES]
end


-- is_refused reports whether a unit is not decoded now because its owner's time is up.
-- entry: what the worker has of an older one.
local function is_refused(of, version, entry)
    if of.follows and entry then
        return false
    end
    local _, _, _, size, owner = _M.split(version)
    return owner ~= "" and size > SMALL and budget.refuses_decoding(owner)
end


local function refresh(kind, name, entry, revision)
    local of = kinds[kind]
    local key = entry and entry[KEY] or of.letter .. name
    local version = memory.version(key)
    if entry and entry[VERSION] == version then
        entry[CHECKED] = revision
        return entry[VALUE]
    end
    local payload, began
    if version then
        if is_refused(of, version, entry) then
            -- Not what the worker has of an older version, which may guard less.
            return false, true
        end
        began = clock()
        payload, version = memory.payload(key)
    end
    if not payload then
        of.cache:drop(name)
        broken[key] = nil
        return nil
    end

    -- A newer unit may name profiles that this configuration lacks, and must not be
    -- served with another profile.
    local new, bytes = decode(kind, name, key, payload, version, entry and entry[VALUE] or nil, began)
    if not new then
        new, bytes = older(key, entry, version)
    end
    new[VERSION], new[CHECKED] = version, revision
    local _, _, _, _, owner = _M.split(version)
    of.cache:put(name, new, bytes, owner)
    return new[VALUE]
end


-- getter returns the function that gives a unit of a kind: get(name, revision)
-- -> the decoded unit, nil if there is none, false if this worker can't use
-- the one that there is. In that case, a second result says whether it can be used
-- later: its owner's time is up.
local function getter(kind)
    local store = kinds[kind].cache
    return function(name, revision)
        local entry = store:get(name)
        if entry and entry[CHECKED] == revision then
            return entry[VALUE]
        end
        return refresh(kind, name, entry, revision)
    end
end


_M.host = getter("host")
_M.name = getter("name")
_M.backend = getter("backend")
_M.certificate = getter("certificate")
_M.ocsp_response = getter("ocsp")
_M.content = getter("content")

local globals = getter("globals")
local patterns = getter("patterns")


function _M.globals(revision)
    return globals("globals", revision)
end


function _M.patterns(revision)
    return patterns("patterns", revision)
end


-- held(kind, name) -> the version that this worker has decoded, nil if it has
-- none; why it can't decode the newest that it tried, nil if it can.
function _M.held(kind, name)
    local entry = kinds[kind].cache:get(name)
    local failed = broken[kinds[kind].letter .. name]
    local err = failed and failed.error
    if not (entry and entry[HELD]) then
        return nil, err
    end
    local _, hash = _M.split(entry[HELD])
    return hash, err
end


-- What this worker could not decode: a list.
function _M.broken()
    local list = {}
    for _, b in pairs(broken) do
        list[#list + 1] = b
    end
    return list
end


-- The backend of that name, nil if it has no endpoint.
function _M.with_endpoints(name, revision)
    local backend = _M.backend(name, revision)
    return backend and backend.count > 0 and backend or nil
end


-- What this worker holds: bytes as the caches count, number of units; and how many it has decoded.
function _M.usage()
    local bytes, count = 0, 0
    for _, of in pairs(kinds) do
        local b, c = of.cache:usage()
        bytes, count = bytes + b, count + c
    end
    return bytes, count, decoded
end


return _M
