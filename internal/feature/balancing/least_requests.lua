-- Least requests: the endpoint with the fewest requests of this worker in progress, of
-- all (least_conn) or of two at random (random).
local endpoints = require "headgate.feature.balancing.endpoints"

local math_random = math.random
local setmetatable = setmetatable

-- How often an endpoint is drawn that is not to be avoided, until the next one is taken.
local DRAWS = 10


local function idle()
    return { active = 0 }
end


-- Counts a request in progress, which `done` takes off.
local function take(self, index)
    local state = self.states[index]
    state.active = state.active + 1
    return index
end


local function done(self, index)
    local state = self.states[index]
    state.active = state.active - 1
end


-- with(pick) -> a module of pickers.
local function with(pick)
    local meta = { __index = { pick = pick, done = done } }
    return {
        new = function(_, backend, before)
            return setmetatable({ backend = backend, states = endpoints.states(backend, before, idle) }, meta)
        end,
    }
end


-- From a random endpoint on, so that equal ones take turns.
local function of_all(self, _, avoid)
    local states, count = self.states, self.backend.count
    local start = math_random(count)
    if avoid then
        -- Else the next one would get the share of one that is to be avoided.
        for _ = 1, DRAWS do
            if not avoid[start] then
                break
            end
            start = math_random(count)
        end
    end
    local best, least
    for i = 1, count do
        local index = start + i - 1
        if index > count then
            index = index - count
        end
        if not (avoid and avoid[index]) and (not best or states[index].active < least) then
            best, least = index, states[index].active
        end
    end
    return take(self, best or start)
end


local function of_two(self, _, avoid)
    local a, b = endpoints.two(self.backend.count, avoid)
    local states = self.states
    return take(self, b and states[b].active < states[a].active and b or a)
end


return { of_all = with(of_all), of_two = with(of_two) }
