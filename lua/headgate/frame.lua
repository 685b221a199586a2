-- The format of a frame: docs/data-plane-api.md. It does not depend on NGINX, so that
-- plain LuaJIT can test it.
local _M = {}

-- The maximum size of a frame.
_M.MAX_BYTES = 262144

local MAX_NAME = 512
local MAX_OWNER = 63
local MAX_PARTS = 100000
-- More digits would not be exact.
local MAX_DIGITS = 15

local KINDS = {
    host = true, name = true, patterns = true, backend = true, certificate = true, ocsp = true, content = true,
    globals = true,
}


-- entry reads the entry that begins at `at`.
-- -> entry, the position behind it | nil, err
local function entry(body, at)
    local line_end = string.find(body, "\n", at, true)
    if not line_end then
        return nil, "an entry without a line end"
    end
    local line = string.sub(body, at, line_end - 1)
    local kind, needs, version, same, part, parts, name_length, length, owner =
        string.match(line, "^put (%l+) (%d+) ([0-9a-f]+)(=?[0-9a-f]*) (%d+)/(%d+) (%d+) (%d+)(.*)$")
    local deletes = false
    if not kind then
        kind, name_length = string.match(line, "^del (%l+) (%d+)$")
        if not kind then
            return nil, "an entry that is neither put nor del"
        end
        deletes, needs, version, same, part, parts, length, owner = true, "0", "0", "", 1, 1, 0, ""
    end
    if owner ~= "" and not string.find(owner, "^ [a-z0-9-]+$") or #owner > MAX_OWNER + 1 then
        return nil, "an invalid owner"
    end
    name_length, length = tonumber(name_length), tonumber(length)
    part, parts = tonumber(part), tonumber(parts)
    if not KINDS[kind] then
        return nil, "an unknown kind"
    end
    if name_length < 1 or name_length > MAX_NAME then
        return nil, "a name that is empty or too long"
    end
    if #needs > MAX_DIGITS then
        return nil, "an invalid generation"
    end
    if #version > 64 or #same > 65 then
        return nil, "a version that is too long"
    end
    if same == "=" then
        return nil, "an empty version"
    end
    if part < 1 or part > parts or parts > MAX_PARTS then
        return nil, "an invalid part"
    end
    local name_at = line_end + 1
    local behind = name_at + name_length + length
    if behind - 1 > #body then
        return nil, "an entry that is longer than the frame"
    end
    return {
        deletes = deletes,
        kind = kind,
        needs = tonumber(needs),
        version = version,
        owner = string.sub(owner, 2),
        same = string.sub(same, 2),
        part = part,
        parts = parts,
        name = string.sub(body, name_at, name_at + name_length - 1),
        payload = string.sub(body, name_at + name_length, behind - 1),
    }, behind
end


-- parse(body, crc32) -> { dictionary, generation, entries } | nil, err
-- crc32: a function that gives the checksum of a string.
function _M.parse(body, crc32)
    if #body > _M.MAX_BYTES then
        return nil, "a frame that is too long"
    end
    local dictionary, generation, count, checksum, first =
        string.match(body, "^headgate 1 (%d+) (%d+) (%d+) (%d+)\n()")
    if not dictionary then
        return nil, "not a frame of format 1"
    end
    if crc32(string.sub(body, first)) ~= tonumber(checksum) then
        return nil, "a wrong checksum"
    end
    local entries = {}
    local at = first
    while at <= #body do
        local e, behind = entry(body, at)
        if not e then
            return nil, behind
        end
        entries[#entries + 1] = e
        at = behind
    end
    if #entries ~= tonumber(count) then
        return nil, "another number of entries than announced"
    end
    for _, e in ipairs(entries) do
        if e.parts > 1 and #entries > 1 then
            return nil, "a part beside other entries"
        end
    end
    return { dictionary = tonumber(dictionary), generation = tonumber(generation), entries = entries }
end


return _M
