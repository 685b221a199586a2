-- Cached responses of auth services: what they are found by, and how long they are kept.
local cjson = require "cjson.safe"
local ffi = require "ffi"
local template = require "headgate.template"

local _M = {}

local answers = ngx.shared.hg_checks
local ipairs = ipairs
local math_max = math.max
local math_min = math.min
local ngx_parse_http_time = ngx.parse_http_time
local ngx_time = ngx.time
local string_find = string.find
local string_lower = string.lower
local string_match = string.match
local table_concat = table.concat
local tonumber = tonumber
local type = type

-- A response is cached for a year at most: a shared dictionary misreads much larger
-- numbers.
local MAX_SECONDS = 365 * 24 * 3600

local NOTHING = {}

ffi.cdef [[
unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);
]]

local HASH_BYTES = 32
local hash = ffi.new("unsigned char[?]", HASH_BYTES)

-- The number of values that a worker remembers of each kind.
local MAX_REMEMBERED = 256


-- memoize(memo, key, value) -> the value, which memo.values has from then on. If there
-- are too many, all others are forgotten.
local function memoize(memo, key, value)
    if memo.count == MAX_REMEMBERED then
        memo.values, memo.count = {}, 0
    end
    memo.values[key], memo.count = value, memo.count + 1
    return value
end


-- The hashes of texts that this worker had last: each costs a call of the TLS library.
local LONGEST_HASHED = 1024
local hashed = { values = {}, count = 0 }


local function hash_of(text)
    local known = hashed.values[text]
    if known then
        return known
    end
    ffi.C.SHA256(text, #text, hash)
    local made = ffi.string(hash, HASH_BYTES)
    return #text <= LONGEST_HASHED and memoize(hashed, text, made) or made
end


-- key_of(policy, request) -> what a cached answer is found by. It changes with all that the
-- policy says, and never stands for two routes or two hosts. As in
-- ingress-nginx, a route's own path shares nothing with what lies below it.
function _M.key_of(policy, request)
    local route, host, identity = request.route, request.name.host, request.route.identity
    return hash_of(policy.version .. "\n" .. request.host_name .. "\n" .. #host .. "\n" .. host
        .. "\n" .. #identity .. "\n" .. identity .. (request.path == route.path and "\nitself\n" or "\nbelow\n")
        .. template.fill_key(policy.cache.key, request)
        .. (request.keeps and "\nkeeps " .. table_concat(request.keeps, " ") or ""))
end


-- Cached responses that this worker has decoded, by their text. They are shared by
-- requests: a cached one has no cookies, and nothing else of it is changed.
local decoded = { values = {}, count = 0 }


-- get(key) -> the response that is cached under a key, nil if none is.
function _M.get(key)
    local text = answers:get(key)
    return text and (decoded.values[text] or memoize(decoded, text, cjson.decode(text)))
end


-- joined(value) -> a header's value as one line
function _M.joined(value)
    return type(value) == "table" and table_concat(value, ", ") or value
end


-- seconds_by_headers is how long the response may be cached by its own headers: nil
-- if they don't say, 0 for not at all. They are those that NGINX's proxy_cache
-- reads; a response that depends on headers (Vary) is not cached.
local function seconds_by_headers(headers)
    if headers["set-cookie"] or headers.vary then
        return 0
    end
    local control = headers["cache-control"]
    if control then
        control = string_lower(_M.joined(control))
        if string_find(control, "no-cache", 1, true) or string_find(control, "no-store", 1, true)
            or string_find(control, "private", 1, true) then
            return 0
        end
        local age = string_match(control, "s%-maxage=(%d+)") or string_match(control, "max%-age=(%d+)")
        if age then
            return tonumber(age)
        end
    end
    local expires = headers.expires
    if expires then
        local time = type(expires) == "string" and ngx_parse_http_time(expires)
        return time and math_max(time - ngx_time(), 0) or 0
    end
    return nil
end


-- seconds_by_status is how long the policy caches responses with that status.
local function seconds_by_status(cache, status)
    for _, valid in ipairs(cache.valid or NOTHING) do
        if valid[1] == 0 or valid[1] == status then
            return valid[2]
        end
    end
    return 0
end


-- remember keeps a response as long as its headers or the policy say.
function _M.remember(policy, key, verdict, headers)
    local seconds = seconds_by_headers(headers) or seconds_by_status(policy.cache, verdict.status)
    seconds = math_min(seconds, MAX_SECONDS)
    -- 0 would mean without end.
    if seconds > 0 then
        answers:set(key, cjson.encode(verdict), seconds)
    end
end


return _M
