-- The shared memory that the controller fills and the workers read.
--
-- Payloads and versions of units are stored under the same key, the kind's letter and
-- the unit's name ("h:shop.example.com"), in dictionaries of their own. A version is
-- "NEEDS VERSION ROW SIZE OWNER": the generation that the unit needs, a hash of its payload and
-- owner, the same for all versions with the same guards, the size of the payload, and the
-- owner. ROW and OWNER may be empty; ROW is then VERSION. A payload is stored
-- after its version, so that a reader never gets one with the other's version. The revision
-- counts changes: a worker looks up a unit's version only when the revision has changed.
local cjson = require "cjson.safe"
local page = require "headgate.page"
local settings = require "headgate.settings"

local _M = {}

local shared = ngx.shared

local control = shared.hg_control
local units, versions, certificates


-- Keys of the control dictionary.
local REVISION = "revision"
local INSTANCE = "instance"
local DICTIONARY = "dictionary"
local SECRET = "secret"
local PAGE = "page"
-- Before a generation, a colon and a pid.
local ACCEPTING = "accepting:"
-- Before the key of a unit, a line end and the hash of an expression in it that was given
-- up; how many there may be of each namespace and in all, and how many bytes of an
-- expression are kept.
local GIVEN_UP = "given up:"
local MAX_GIVEN_UP_EACH = 10
local MAX_GIVEN_UP = 100
local MAX_EXPRESSION = 200

-- The revision once more, in a page that is read without the lock that workers share; nil
-- if there is none.
local word


local function names(number)
    return shared["hg_units_" .. number], shared["hg_versions_" .. number], shared["hg_certificates_" .. number]
end


-- copy fills a dictionary from the one that it replaces.
local function copy(from, to)
    for _, key in ipairs(from:get_keys(0)) do
        local value = from:get(key)
        if value ~= nil then
            local ok, err = to:safe_set(key, value)
            if not ok then
                error("copy " .. key .. " into a larger dictionary: " .. err)
            end
        end
    end
end


-- Starts to use the dictionaries of the settings. Runs before this configuration has
-- workers, so that none of them sees an empty dictionary.
function _M.init()
    units, versions, certificates = names(settings.dictionary)
    control:safe_add(INSTANCE, ngx.now() .. "-" .. ngx.worker.pid())
    control:safe_add(REVISION, 1)

    if settings.previous_dictionary and control:get(DICTIONARY) ~= settings.dictionary then
        local old_units, old_versions, old_certificates = names(settings.previous_dictionary)
        copy(old_units, units)
        copy(old_certificates, certificates)
        copy(old_versions, versions)
    end
    control:set(DICTIONARY, settings.dictionary)

    -- This memory and the page live as long as the master.
    local address = control:get(PAGE) or page.new()
    if address then
        control:set(PAGE, address)
        word = page.at(address)
        _M.publish()
    end
end


-- publish() -> the revision, which the page has from then on. If two workers publish at
-- the same time, or one died before it did, the last one to come here puts it right.
function _M.publish()
    local revision = control:get(REVISION)
    while word and word[0] ~= revision do
        word[0] = revision
        revision = control:get(REVISION)
    end
    return revision
end


-- The revision of what was applied last. A worker that reads it finds what was
-- written before: the writer let go of the dictionaries' locks before it wrote the
-- page, and the reader takes them after it has read it.
function _M.revision()
    return word and word[0] or control:get(REVISION)
end


function _M.touch()
    control:incr(REVISION, 1)
    return _M.publish()
end


-- A flag of the whole NGINX, as set_flag has set it:
--   loaded    the first full load is complete
--   draining  clients are asked to come back on other connections, before a reload
--             closes theirs
--   leaving   this NGINX is about to exit
function _M.flag(name)
    return control:get(name) == true
end


function _M.set_flag(name, on)
    control:set(name, on or nil)
end


-- Identifies this memory: another one is empty.
function _M.instance()
    return control:get(INSTANCE)
end


-- A secret of all workers: what the first of them to ask has made.
function _M.secret(make)
    local secret = control:get(SECRET)
    if not secret then
        control:safe_add(SECRET, make())
        secret = control:get(SECRET)
    end
    return secret
end


-- A worker that accepts connections is counted until it stops to.
function _M.accept(generation, pid)
    control:set(ACCEPTING .. generation .. ":" .. pid, true)
end


function _M.stop_accepting(generation, pid)
    control:delete(ACCEPTING .. generation .. ":" .. pid)
end


-- The workers that accept connections, and those that crashed while they did: a list
-- of { generation, pid }.
function _M.accepting()
    local list = {}
    for _, key in ipairs(control:get_keys(0)) do
        local generation, pid = string.match(key, "^" .. ACCEPTING .. "(%d+):(%d+)$")
        if generation then
            list[#list + 1] = { generation = tonumber(generation), pid = tonumber(pid) }
        end
    end
    return list
end


-- The dictionary for the payload of a unit, and for the parts of one that is too long
-- for one frame, under keys of their own, until the last one is there.
local function payloads(key)
    if string.sub(key, 1, 2) == "c:" then
        return certificates
    end
    return units
end
_M.payloads = payloads


-- A unit's version with the generation that it needs, as one string; nil if
-- there is no such unit.
function _M.version(key)
    return versions:get(key)
end


-- NGINX frees memory as it is. Where a dictionary may hold private keys and passwords,
-- a value is overwritten before it is freed: that happens where it is, since the
-- length is the same.
local function erase(dictionary, key)
    local value = dictionary:get(key)
    if type(value) == "string" then
        dictionary:safe_set(key, string.rep("\0", #value))
    end
    dictionary:delete(key)
end
_M.erase = erase


-- A certificate that is replaced by another one is written to its second place and
-- erased from its first one, or the other way round: readers find one of both.
local function second(key)
    return key .. "\nsecond"
end


-- parse(value) -> payload, version | nil if there is none, or it is being erased.
local function parse(value)
    local line_end = value and string.find(value, "\n", 1, true)
    if not line_end then
        return nil
    end
    return string.sub(value, line_end + 1), string.sub(value, 1, line_end - 1)
end


-- payload(key) -> a unit's payload and its version, which may be newer than
-- what version gave; nil if there is none.
function _M.payload(key)
    local dictionary = payloads(key)
    local payload, version = parse(dictionary:get(key))
    if not payload and dictionary == certificates then
        payload, version = parse(dictionary:get(second(key)))
        if not payload then
            -- It may have been written back in between.
            payload, version = parse(dictionary:get(key))
        end
    end
    return payload, version
end


-- write_payload(key, value) -> true, the key of the value to erase then, if there is
-- one | nil, err
local function write_payload(key, value)
    local dictionary = payloads(key)
    local before = dictionary == certificates and dictionary:get(key)
    if not before or #before == #value then
        local ok, err = dictionary:safe_set(key, value)
        return ok or nil, ok and dictionary == certificates and second(key) or err
    end
    -- Left by a worker that crashed.
    erase(dictionary, second(key))
    local ok, err = dictionary:safe_set(second(key), value)
    return ok or nil, ok and key or err
end


-- write(key, version, payload) -> true | nil, err
function _M.write(key, version, payload)
    local ok, old = write_payload(key, version .. "\n" .. payload)
    if not ok then
        return nil, old
    end
    local err
    ok, err = versions:safe_set(key, version)
    if not ok then
        return nil, err
    end
    if old then
        erase(payloads(key), old)
    end
    return true
end


function _M.delete(key)
    versions:delete(key)
    local dictionary = payloads(key)
    erase(dictionary, key)
    if dictionary == certificates then
        erase(dictionary, second(key))
    end
end


-- Expressions that were given up: a list of { unit, version, host, namespace, ingress,
-- pattern, since }. Those of units that have changed since then are forgotten.
function _M.given_up()
    local list = {}
    for _, key in ipairs(control:get_keys(0)) do
        local entry = string.sub(key, 1, #GIVEN_UP) == GIVEN_UP and cjson.decode(control:get(key))
        if entry and entry.version == versions:get(entry.unit) then
            list[#list + 1] = entry
        elseif entry then
            control:delete(key)
        end
    end
    return list
end


-- Notes that an expression was given up, unless there are too many already.
function _M.note_given_up(unit, host, namespace, ingress, pattern)
    local all, own = _M.given_up(), 0
    for _, entry in ipairs(all) do
        own = own + (entry.namespace == namespace and 1 or 0)
    end
    if own < MAX_GIVEN_UP_EACH and #all < MAX_GIVEN_UP then
        control:safe_add(GIVEN_UP .. unit .. "\n" .. ngx.md5(namespace .. "\n" .. pattern), cjson.encode({
            unit = unit, version = versions:get(unit), host = host, namespace = namespace, ingress = ingress,
            pattern = string.sub(pattern, 1, MAX_EXPRESSION), since = ngx.time(),
        }))
    end
end


local function usage(dictionary)
    return { capacity = dictionary:capacity(), free = dictionary:free_space() }
end


-- Bytes that the dictionaries have, and that are free in whole pages.
function _M.usage()
    return {
        units = usage(units),
        versions = usage(versions),
        certificates = usage(certificates),
    }
end


local PAGE_BYTES = 4096
local RESERVE = 16 * PAGE_BYTES
-- What a version takes without its owner.
local VERSION_BYTES = 72


-- rounded is the maximum memory of an entry: NGINX rounds small ones up to a power of
-- two and larger ones to whole pages.
local function rounded(bytes)
    bytes = bytes + 128
    if bytes > PAGE_BYTES / 2 then
        return math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
    end
    local size = 64
    while size < bytes do
        size = size * 2
    end
    return size
end


-- Reports whether entries would fit. NGINX's safe_set deletes the old value of a key
-- if the new one does not fit, so this must be known before anything is written.
-- Twice the size is required, since the free pages may be fragmented. entries: a list of
-- { key = , size = , owner = }.
function _M.fits(entries)
    local needed = { [units] = RESERVE, [versions] = RESERVE, [certificates] = RESERVE }
    for _, entry in ipairs(entries) do
        local dictionary = payloads(entry.key)
        needed[dictionary] = needed[dictionary] + 2 * rounded(#entry.key + entry.size)
        needed[versions] = needed[versions] + 2 * rounded(#entry.key + #entry.owner + VERSION_BYTES)
    end
    for dictionary, bytes in pairs(needed) do
        if dictionary:free_space() < bytes then
            return false
        end
    end
    return true
end


return _M
