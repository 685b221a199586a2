-- The data plane's API: docs/data-plane-api.md.
local cjson = require "cjson.safe"
local counters = require "headgate.counters"
local ejection = require "headgate.ejection"
local features = require "headgate.features"
local frame = require "headgate.frame"
local log = require "headgate.log"
local memory = require "headgate.memory"
local settings = require "headgate.settings"
local units = require "headgate.units"

local _M = {}

-- How many ejected endpoints the state lists.
local EJECTED = 100

-- How much of several units is read at once: some, and no further one behind so many bytes.
local READ_UNITS = 50
local READ_BYTES = 65536


local function say(status, value)
    ngx.status = status
    ngx.header["Content-Type"] = "application/json"
    ngx.say(type(value) == "string" and value or cjson.encode(value))
    return ngx.exit(ngx.OK)
end


local function refuse(status, why)
    return say(status, { error = why })
end


-- body reads a request's body, which must fit into memory: keys must not reach a
-- file. -> body | nil, status, err
local function body()
    local length = tonumber(ngx.var.http_content_length)
    if not length then
        return nil, 411, "no Content-Length"
    end
    if length > frame.MAX_BYTES then
        return nil, 413, "a frame has at most " .. frame.MAX_BYTES .. " bytes"
    end
    ngx.req.read_body()
    return ngx.req.get_body_data() or ""
end


-- part_key is the key of a part in the dictionary of the unit's payload.
local function part_key(key, part)
    return key .. "\n" .. part
end


-- part_head is the start of a part, which identifies its unit.
local function part_head(e)
    return e.version .. "/" .. e.parts .. "\n"
end


-- parts_before returns the parts of a unit before the one in an entry, nil if one of
-- them is not there.
local function parts_before(key, e)
    local parts, head, dictionary = {}, part_head(e), memory.payloads(key)
    for part = 1, e.part - 1 do
        local stored = dictionary:get(part_key(key, part))
        if not stored or string.sub(stored, 1, #head) ~= head then
            return nil
        end
        parts[part] = string.sub(stored, #head + 1)
    end
    return parts
end


-- drop_parts removes the parts of a unit, also those of a push that ended
-- before the last one.
local function drop_parts(key)
    local part, dictionary = 1, memory.payloads(key)
    while dictionary:get(part_key(key, part)) do
        memory.erase(dictionary, part_key(key, part))
        part = part + 1
    end
end


local function apply(e)
    local key = units.key(e.kind, e.name)
    if e.part < e.parts then
        if e.part == 1 then
            drop_parts(key)
        end
        return memory.payloads(key):safe_set(part_key(key, e.part), part_head(e) .. e.payload)
    end
    local payload = table.concat(parts_before(key, e)) .. e.payload
    drop_parts(key)
    if e.deletes then
        memory.delete(key)
        return true
    end
    local row = e.same ~= "" and e.same or e.version
    return memory.write(key, units.join(e.needs, e.version, row, #payload, e.owner), payload)
end


-- sizes are the sizes of entries: a unit in parts needs room for its parts and for
-- the whole.
local function sizes(entries)
    local list = {}
    for i, e in ipairs(entries) do
        local size = #e.payload
        if e.parts > 1 and e.part == e.parts then
            size = frame.MAX_BYTES * e.parts
        end
        list[i] = { key = units.key(e.kind, e.name), size = size, owner = e.owner }
    end
    return list
end


local function post_apply()
    local data, status, err = body()
    if not data then
        return refuse(status, err)
    end
    local f
    f, err = frame.parse(data, ngx.crc32_long)
    if not f then
        return refuse(400, err)
    end
    if f.dictionary ~= settings.dictionary or f.generation ~= settings.generation or ngx.worker.exiting() then
        return refuse(409, "this worker is of dictionary " .. settings.dictionary ..
            " and generation " .. settings.generation .. (ngx.worker.exiting() and " and leaves" or ""))
    end
    -- A unit in parts has a frame of its own.
    local first = f.entries[1]
    if first and not parts_before(units.key(first.kind, first.name), first) then
        return refuse(400, "a part without those before it")
    end
    if not memory.fits(sizes(f.entries)) then
        return refuse(507, "the shared memory has no room for this")
    end
    for _, e in ipairs(f.entries) do
        local ok
        ok, err = apply(e)
        if not ok then
            log.err("apply ", e.kind, " ", e.name, ": ", err)
            memory.touch()
            return refuse(507, err)
        end
    end
    return say(200, { revision = memory.touch(), memory = memory.usage() })
end


-- setter returns the call that sets a flag of the shared memory.
local function setter(flag, on)
    return function()
        memory.set_flag(flag, on)
        return say(200, { revision = memory.touch() })
    end
end


-- some is a list, nil if it is empty: cjson would write that as an object.
local function some(list)
    return #list > 0 and list or nil
end


local function get_state()
    local bytes, count, decoded = units.usage()
    local counted = counters.read()
    return say(200, {
        instance = memory.instance(),
        dictionary = settings.dictionary,
        generation = settings.generation,
        pid = ngx.worker.pid(),
        revision = memory.revision(),
        loaded = memory.flag("loaded"),
        draining = memory.flag("draining"),
        leaving = memory.flag("leaving"),
        accepting = some(memory.accepting()),
        memory = memory.usage(),
        broken = some(units.broken()),
        cache = { bytes = bytes, units = count, decoded = decoded },
        kept = require("headgate.request").kept(),
        refusals = counted.refusals,
        given_up = some(memory.given_up()),
        ejected = some(ejection.list(EJECTED)),
        ejections = counted.ejections,
        uncounted = counted.uncounted,
        times = counted.times,
        retries = counted.retries and counted.retries.retry,
    })
end


-- reports(setting, module) is a call for reports of a module. Without its setting there are
-- none.
local function reports(setting, module)
    return function()
        if not settings[setting] then
            return say(200, {})
        end
        local seen, status, err = body()
        if not seen then
            return refuse(status, err)
        end
        return say(200, require(module).exchange(seen))
    end
end


-- What the controller does with a feature's data beside requests: the feature's module
-- exchange, run(body) -> the response | nil, err.
local function post_feature(module)
    local data, status, err = body()
    if not data then
        return refuse(status, err)
    end
    local answer
    answer, err = module.run(data)
    if not answer then
        return refuse(400, err)
    end
    return say(200, answer)
end


-- describe(kind, name) -> a unit, with what this worker holds of it, as JSON; nil if there is none
local function describe(kind, name)
    local payload, version = memory.payload(units.key(kind, name))
    if not payload then
        return nil
    end
    local unit = cjson.decode(payload)
    if unit == nil then
        payload = "null"
    elseif kind == "certificate" then
        payload = cjson.encode({ chain = type(unit) == "table" and unit.chain or nil })
    end
    local needs, hash = units.split(version)
    local worker = { pid = ngx.worker.pid(), generation = settings.generation }
    worker.holds, worker.error = units.held(kind, name)
    return '{"version":"' .. hash .. '","needs":' .. needs .. ',"worker":' .. cjson.encode(worker) ..
        ',"unit":' .. payload .. "}"
end


local function get_unit(kind, name)
    local text = describe(kind, name)
    if not text then
        return refuse(404, "no " .. kind .. " " .. name)
    end
    return say(200, text)
end


-- Reads units of a kind, whose names are the lines of the body. Requests wait meanwhile: it
-- reads so many that they hardly do, and says how many names it has looked at.
local function post_units(kind)
    local names, status, err = body()
    if not names then
        return refuse(status, err)
    end
    local read, bytes, list = 0, 0, {}
    for name in string.gmatch(names, "[^\n]+") do
        if read == READ_UNITS or bytes >= READ_BYTES then
            break
        end
        read = read + 1
        local text = describe(kind, name)
        if text then
            bytes = bytes + #text
            list[#list + 1] = cjson.encode(name) .. ":" .. text
        end
    end
    return say(200, '{"read":' .. read .. ',"units":{' .. table.concat(list, ",") .. "}}")
end


local CALLS = {
    ["/v1/apply"] = { POST = post_apply },
    ["/v1/loaded"] = { PUT = setter("loaded", true) },
    ["/v1/draining"] = { PUT = setter("draining", true), DELETE = setter("draining") },
    ["/v1/leaving"] = { PUT = setter("leaving", true) },
    ["/v1/state"] = { GET = get_state },
    ["/v1/connections"] = { GET = function() return ngx.exec("@nginx_status") end },
    ["/v1/traffic"] = { POST = reports("traffic", "headgate.traffic_report") },
    ["/v1/spans"] = { POST = reports("tracing", "headgate.span_report") },
    ["/v1/patterns"] = { GET = function() return get_unit("patterns", "patterns") end },
    ["/v1/globals"] = { GET = function() return get_unit("globals", "globals") end },
}

local COLLECTIONS = { hosts = "host", names = "name", backends = "backend", certificates = "certificate",
    ocsp = "ocsp" }


function _M.run()
    local path = ngx.var.uri
    local method = ngx.req.get_method()
    local calls = CALLS[path]
    local several = COLLECTIONS[string.match(path, "^/v1/(%l+)$")]
    if several then
        calls = { POST = function() return post_units(several) end }
    end
    local collection, name = string.match(path, "^/v1/(%l+)/(.+)$")
    if collection == "backends" and not string.match(name, "/.*/") then
        -- NGINX merges slashes; the second one begins an empty namespace.
        name = "/" .. name
    end
    if not calls and COLLECTIONS[collection] then
        calls = { GET = function() return get_unit(COLLECTIONS[collection], name) end }
    end
    local module = collection == "features" and features.module(name, "exchange")
    if module then
        calls = { POST = function() return post_feature(module) end }
    end
    if not calls then
        return refuse(404, "no such path: " .. string.sub(path, 1, 200))
    end
    if not calls[method] then
        return refuse(405, method .. " is not allowed here")
    end
    return calls[method]()
end


return _M
