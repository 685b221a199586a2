-- What pickers know about the endpoints of a backend. It stays when other endpoints
-- come or go: an endpoint that stays keeps its state, which requests in progress share.
local _M = {}

local math_random = math.random


-- states(backend, before, make) -> a list of the endpoints' states, by index.
--   before: the list of an earlier picker with its backend, { states, backend }, or nil
--   make(): a new state
function _M.states(backend, before, make)
    local known = {}
    if before then
        for i, state in ipairs(before.states) do
            known[before.backend:endpoint(i)] = state
        end
    end
    local states = {}
    for i, endpoint in ipairs(backend:endpoints()) do
        states[i] = known[endpoint] or make()
    end
    return states
end


-- two(count, avoid) -> two different indexes at random, of those not to be avoided as far as
-- there are some; the second one is nil if there is only one.
function _M.two(count, avoid)
    if not avoid then
        if count == 1 then
            return 1
        end
        local a, b = math_random(count), math_random(count - 1)
        return a, b < a and b or b + 1
    end
    -- A walk over all, since this is rare: the n-th one that fits replaces one of the two
    -- with the right probability.
    local a, b
    local fitting = 0
    for i = 1, count do
        if not avoid[i] then
            fitting = fitting + 1
            if fitting == 1 then
                a = i
            elseif fitting == 2 then
                b = i
            else
                local place = math_random(fitting)
                if place == 1 then
                    a = i
                elseif place == 2 then
                    b = i
                end
            end
        end
    end
    if not a then
        return _M.two(count)
    end
    -- Where nothing else decides, the caller takes the first one.
    if b and math_random(2) == 1 then
        return b, a
    end
    return a, b
end


return _M
