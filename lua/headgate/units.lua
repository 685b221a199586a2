-- The units that this worker has decoded: when first needed, and again when their
-- version has changed.
local cache = require "headgate.cache"
local cjson = require "cjson.safe"
local log = require "headgate.log"
local memory = require "headgate.memory"
local settings = require "headgate.settings"

local _M = {}

local MEGABYTE = 1024 * 1024

-- compile makes of a unit, which is JSON, what requests need, and raises an error if it
-- can't. Decoded units take about four times their packed size, and a worker is to
-- stay below 80 MB. The kinds and their letters are those of internal/unit/kind.go:
-- a test compares them.
local kinds = {
    host = { letter = "h:", compile = require("headgate.host").compile, cache = cache.new(8 * MEGABYTE) },
    name = { letter = "n:", compile = require("headgate.name").compile, cache = cache.new(2 * MEGABYTE) },
    backend = { letter = "b:", compile = require("headgate.backend").compile, cache = cache.new(2 * MEGABYTE) },
    certificate = {
        letter = "c:", compile = require("headgate.certificate_unit").compile, cache = cache.new(4 * MEGABYTE),
    },
    ocsp = { letter = "s:", compile = require("headgate.ocsp_unit").compile, cache = cache.new(2 * MEGABYTE) },
    -- Bytes in a format of their feature.
    content = { letter = "t:", cache = cache.new(4 * MEGABYTE) },
    patterns = { letter = "p:", compile = require("headgate.patterns").compile, cache = cache.new(MEGABYTE) },
    globals = { letter = "g:", compile = require("headgate.globals").compile, cache = cache.new(MEGABYTE) },
}

-- What this worker could not decode, by key.
local broken = {}


-- The key under which the shared memory has a unit.
function _M.key(kind, name)
    local of = kinds[kind]
    return of and of.letter .. name
end


-- split parts "NEEDS VERSION".
function _M.split(version)
    local space = string.find(version, " ", 1, true)
    return tonumber(string.sub(version, 1, space - 1)), string.sub(version, space + 1)
end


local function compile(kind, payload, name, before)
    local make = kinds[kind].compile
    if not make then
        return payload
    end
    local unit, err = cjson.decode(payload)
    return make(unit or error(err, 0), name, before)
end


-- decode makes an entry of a payload, nil if this worker can't use it. before:
-- what the worker has of an older one.
local function decode(kind, name, key, payload, version, before)
    local needs, hash = _M.split(version)
    if needs > settings.generation then
        return nil
    end
    local ok, value = pcall(compile, kind, payload, name, before)
    if not ok then
        log.err(kind, " ", name, " can't be decoded: ", value)
        broken[key] = { kind = kind, name = name, version = hash, error = value }
        return nil
    end
    broken[key] = nil
    return { key = key, value = value, bytes = #payload + #key, held = hash }
end


local function refresh(kind, name, entry, revision)
    local of = kinds[kind]
    local key = entry and entry.key or of.letter .. name
    local version = memory.version(key)
    if entry and entry.version == version then
        entry.checked = revision
        return entry.value
    end
    local payload
    if version then
        payload, version = memory.payload(key)
    end
    if not payload then
        of.cache:drop(name)
        broken[key] = nil
        return nil
    end

    -- If the new version can't be used, the worker stays with the old one. A newer unit
    -- may name profiles that this configuration lacks, and must not be served with
    -- another profile.
    local new = decode(kind, name, key, payload, version, entry and entry.value or nil)
        or {
            key = key,
            value = entry and entry.value or false,
            bytes = entry and entry.bytes or #key,
            held = entry and entry.held,
        }
    new.version = version
    new.checked = revision
    of.cache:put(name, new)
    return new.value
end


-- getter returns the function that gives a unit of a kind: get(name, revision)
-- -> the decoded unit, nil if there is none, false if this worker can't use
-- the one that there is.
local function getter(kind)
    local store = kinds[kind].cache
    return function(name, revision)
        local entry = store:get(name)
        if entry and entry.checked == revision then
            return entry.value
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
    return entry and entry.held, failed and failed.error
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


-- What this worker holds: packed bytes, number of units.
function _M.usage()
    local bytes, count = 0, 0
    for _, of in pairs(kinds) do
        local b, c = of.cache:usage()
        bytes, count = bytes + b, count + c
    end
    return bytes, count
end


return _M
