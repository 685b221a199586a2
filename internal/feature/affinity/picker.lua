-- The picker of a backend with session affinity: the endpoint that the client's cookie names.
--
-- The cookies are those of ingress-nginx: "KEY|BACKEND". BACKEND is a hash of the backend's
-- name. In balanced mode, a KEY is any text, and belongs to an endpoint by consistent
-- hashing; in persistent mode, it is a hash of the backend's name and the endpoint.
--
-- A session stays at an endpoint that is terminating while that is there. None begins there,
-- and none comes back after a try that failed.
local budget = require "headgate.budget"
local cache = require "headgate.cache"
local ketama = require "headgate.picker.ketama"
local list = require "headgate.list"

local _M = {}

local clock = budget.clock
local math_ceil = math.ceil
local math_min = math.min
local math_random = math.random
local ngx_md5 = ngx.md5
local ngx_var = ngx.var
local setmetatable = setmetatable
local string_byte = string.byte
local string_find = string.find
local string_format = string.format
local string_gsub = string.gsub
local string_match = string.match
local string_sub = string.sub

local SPACE, SEMICOLON = 32, 59

-- How many keys are tried to find one of an endpoint that was not asked: so many times the
-- share of endpoints that are not terminating. If there is one such endpoint of three, all of
-- them fail once in ten billion times.
local ATTEMPTS = 60
-- With any number of endpoints.
local MAX_ATTEMPTS = 1000

-- How often an endpoint is drawn that is not to be avoided, until the next one is taken.
local DRAWS = 10

-- What an endpoint takes in persistent mode, in packed bytes: see headgate.backend.
local WEIGHT = 30

local methods = {}
local meta = { __index = methods }

-- Canaries with the sessions of another backend, in packed bytes.
local canaries = cache.new(1024 * 1024)


-- The endpoints of a backend by index, with those that are terminating.
local function all_of(backend)
    local all = backend:endpoints()
    for _, endpoint in ipairs(backend.terminating or {}) do
        all[#all + 1] = endpoint
    end
    return all
end


-- settings: { cookie, persistent, moves }, see affinity.go
local function make(settings, backend, before)
    local label = string_gsub(backend.name, "/", "-")
    local endpoints = all_of(backend)
    local self = {
        backend = backend,
        endpoints = endpoints,
        settings = settings,
        prefix = settings.cookie .. "=",
        hash = ngx_md5(ngx_md5(label) .. label),
        persistent = settings.persistent or false,
        moves = settings.moves,
    }
    self.id = (self.persistent and " p " or " b ") .. (self.moves and "moves " or "") .. settings.cookie
    if before and (before.persistent ~= self.persistent or not list.equal(before.endpoints, endpoints)) then
        before = nil
    end
    if not self.persistent then
        -- It is made here, where its time is charged to the backend's owner.
        self.ring = before and before.ring or ketama.new(endpoints)
        self.attempts = math_min(math_ceil(ATTEMPTS * #endpoints / backend.count), MAX_ATTEMPTS)
        self.weight = ketama.weight(endpoints)
        return setmetatable(self, meta)
    end
    local keys, places = {}, {}
    for i = 1, #endpoints do
        keys[i] = before and before.keys[i] or ngx_md5(label .. endpoints[i])
        places[keys[i]] = i
    end
    self.keys, self.places, self.weight = keys, places, WEIGHT * #endpoints
    return setmetatable(self, meta)
end


_M.new = make


-- begins reports whether a cookie begins at a place of a Cookie header.
local function begins(header, place)
    if place == 1 then
        return true
    end
    local byte = string_byte(header, place - 1)
    return byte == SPACE or byte == SEMICOLON
end


-- sent(self) -> the key that the client sent, nil if it sent none; whether it is of a
-- session at this backend. Browsers send the cookies of all paths that they are below, so
-- there may be several of one name: the last one of this backend counts, or else the last
-- one.
local function sent(self)
    local header = ngx_var.http_cookie
    if not header then
        return nil
    end
    local prefix = self.prefix
    local key, own
    local first, last = string_find(header, prefix, 1, true)
    while first do
        local stop = last + 1
        if begins(header, first) then
            stop = string_find(header, ";", last + 1, true) or #header + 1
            local text, hash = string_match(string_sub(header, last + 1, stop - 1), "^([^| ]+)|?([^| ]*)")
            local is_own = hash == self.hash
            if text and (is_own or not own) then
                key, own = text, is_own
            end
        end
        first, last = string_find(header, prefix, stop, true)
    end
    return key, own
end


-- Reports whether the client's session is at this backend.
function methods.holds(self)
    local _, own = sent(self)
    return own == true
end


-- share(backend) -> that backend with a picker that keeps sessions as this one does, by the
-- same cookie.
function methods.share(self, backend)
    local key = backend.name .. self.id
    local entry = canaries:get(key)
    if not entry or entry.backend ~= backend then
        local began = clock()
        local owner = string_match(backend.name, "^[^/]*")
        local picker = make(self.settings, backend, entry and entry.value.picker)
        entry = { backend = backend, value = backend:with_picker(picker) }
        canaries:put(key, entry, #key + WEIGHT * #picker.endpoints + picker.weight, owner)
        budget.charge_decoding(owner, clock() - began)
    end
    return entry.value
end


-- free_place(count, avoid) -> a random index that is not to be avoided, if there is one.
local function free_place(count, avoid)
    local start = math_random(count)
    for _ = 1, avoid and DRAWS or 0 do
        if not avoid[start] then
            break
        end
        start = math_random(count)
    end
    for i = start, start + count - 1 do
        local index = (i - 1) % count + 1
        if not avoid or not avoid[index] then
            return index
        end
    end
    return start
end


-- start(self, avoid) -> the index of the endpoint of a new session, its key
local function start(self, avoid)
    if self.persistent then
        local index = free_place(self.backend.count, avoid)
        return index, self.keys[index]
    end
    local count, ring = self.backend.count, self.ring
    if avoid and avoid[free_place(count, avoid)] then
        -- All are to be avoided.
        avoid = nil
    end
    local index, key, used, used_key
    for _ = 1, self.attempts do
        key = string_format("%08x%08x", math_random(0, 0xffffffff), math_random(0, 0xffffffff))
        index = ring:find(key)
        if index <= count then
            if not (avoid and avoid[index]) then
                return index, key
            end
            used, used_key = index, key
        end
    end
    if used then
        return used, used_key
    end
    return free_place(count), key
end


-- A session that began with this request moves from what is to be avoided; one that the
-- client's cookie names only if the settings say so, or its endpoint is terminating.
function methods.pick(self, request, avoid, first)
    if not request.session then
        local key = sent(self)
        local index
        if self.persistent then
            index = self.places[key]
        elseif key then
            index = self.ring:find(key)
        end
        if index and not (avoid and avoid[index] and (self.moves or index > self.backend.count)) then
            return index
        end
    end
    local index, key = start(self, first or avoid)
    request.session = self.prefix .. key .. "|" .. self.hash
    return index
end


return _M
