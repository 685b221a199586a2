-- Slow start: an endpoint that is new to a backend gets its share gradually.
--
-- While some are new, the backend has a picker around its own one: it draws for each request
-- which of them the first try avoids. When the last one has its share, the backend has its own
-- picker again. All workers have the same times, also those after a reload: what the
-- backend's endpoints are, and since when those are there that are new, stands in shared memory.
-- A worker without a request while an endpoint was away does not notice that it is new.
local cjson = require "cjson.safe"
local list = require "headgate.list"

local _M = {}

local math_max = math.max
local math_random = math.random
local ngx_now = ngx.now
local setmetatable = setmetatable
local union = list.union

local starts = ngx.shared.hg_starts

-- What an endpoint gets of its share at first.
local LEAST = 0.1
-- A backend with more endpoints has no slow start: the others would hardly notice one more.
local MAX_ENDPOINTS = 1000

local methods = {}
local meta = { __index = methods }


-- known(backend, before) -> when the endpoints that the backend had were new, in seconds since
-- 1970, 0 for those that have their share; nil if it had none.
local function known(backend, before)
    local times = cjson.decode(starts:get(backend.name) or "")
    if not times and before then
        times = {}
        for i = 1, before.count do
            times[before:endpoint(i)] = 0
        end
    end
    return times
end


-- since(backend, before, seconds, now) -> when its endpoints were new: as known. If none of
-- them was there before, there is none that could do the work meanwhile: all have their share.
local function since(backend, before, seconds, now)
    local old, new, stays = known(backend, before) or {}, {}, false
    for i = 1, backend.count do
        local endpoint = backend:endpoint(i)
        local at = old[endpoint]
        stays = stays or at ~= nil
        new[endpoint] = at and (at + seconds > now and at or 0) or now
    end
    if not stays then
        for endpoint in pairs(new) do
            new[endpoint] = 0
        end
    end
    return new
end


-- draw(self, count, avoid, now) -> the set of the endpoints that a first try avoids: avoid,
-- and of the new ones each as often as it has not its share. Never all. It is the same table
-- each time.
local function draw(self, count, avoid, now)
    local indexes, times, set = self.indexes, self.times, self.set
    local drawn = 0
    for i = 1, #indexes do
        local given_up = math_random() >= math_max(LEAST, (now - times[i]) / self.seconds)
        set[indexes[i]] = given_up or nil
        drawn = drawn + (given_up and 1 or 0)
    end
    if drawn == 0 or drawn == count then
        return avoid
    end
    return avoid and (union(set, avoid, count) or avoid) or set
end


-- Only a first try is given up: a retry has few endpoints to choose from.
local function pick(self, request, avoid)
    local base, backend, state = self.base, self.of, self.state
    if request and request.tried then
        return base:pick(request, avoid)
    end
    local now = ngx_now()
    if now >= state.over then
        backend.picker, backend.starting = base, nil
        if backend.turns == self then
            backend.turns = base
        end
        return base:pick(request, avoid)
    end
    local first = draw(state, backend.count, avoid, now)
    if base.holds then
        -- Sessions that have begun stay.
        return base:pick(request, avoid, first)
    end
    return base:pick(request, first)
end


-- Puts a picker around that of a backend with these endpoints.
function methods.wrap(self, backend)
    local base = backend.picker
    local picker = setmetatable({ base = base, of = backend, state = self, pick = pick }, { __index = base })
    if backend.turns == base then
        backend.turns = picker
    end
    backend.picker, backend.starting = picker, self
end


-- begin(backend, seconds, before) begins the slow start of what is new of a backend's endpoints.
--   before: the backend that this worker had, nil if none
--   seconds: nil if the backend has no slow start any more
function _M.begin(backend, seconds, before)
    if not seconds or backend.count > MAX_ENDPOINTS then
        starts:delete(backend.name)
        return
    end
    local now = ngx_now()
    local all = since(backend, before, seconds, now)
    -- The backend that was not used for the longest time makes room.
    starts:set(backend.name, cjson.encode(all))
    local indexes, times, latest = {}, {}, 0
    for i = 1, backend.count do
        local at = all[backend:endpoint(i)]
        if at > 0 then
            indexes[#indexes + 1], times[#times + 1] = i, at
            latest = math_max(latest, at)
        end
    end
    if #indexes > 0 then
        setmetatable({
            indexes = indexes, times = times, set = {}, seconds = seconds, over = latest + seconds,
        }, meta):wrap(backend)
    end
end


return _M
