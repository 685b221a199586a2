-- The only place that writes to the error log. NGINX writes a message as it
-- is, so a line end in it would forge a line: control bytes are escaped.
--
-- What clients can make it write is bounded, in each worker: a line a second for
-- each place and host, and LINES a second together. Notices, which a setting asks for, and
-- refusals, which any client can cause, have bounds of their own.
local _M = {}

local LINES = 50
local NOTICES_OF_PLACE = 20
local NOTICES = 100
local REFUSALS = 20

local errors = { level = ngx.ERR, of_place = 1, together = LINES, second = 0, lines = 0 }
local notices = { level = ngx.NOTICE, of_place = NOTICES_OF_PLACE, together = NOTICES, second = 0, lines = 0 }
local refusals = { level = ngx.ERR, of_place = 1, together = REFUSALS, second = 0, lines = 0 }
-- The number of places that are remembered.
local PLACES = 1000

-- By place: the second of its last lines, how many there were in it, and how many were
-- left out since.
local places = {}
local place_count = 0


local function escape(c)
    return string.format("\\x%02x", string.byte(c))
end


-- left_out -> how many lines of a place were left out since its last one, nil if this
-- one is to be left out as well.
local function left_out(name, bound)
    local now = ngx.time()
    if now ~= bound.second then
        bound.second, bound.lines = now, 0
    end
    local place = places[name]
    if not place then
        if place_count >= PLACES then
            places, place_count = {}, 0
        end
        place = { second = 0, lines = 0, left = 0 }
        places[name] = place
        place_count = place_count + 1
    end
    if place.second ~= now then
        place.second, place.lines = now, 0
    end
    if place.lines >= bound.of_place or bound.lines >= bound.together then
        place.left = place.left + 1
        return nil
    end
    local left = place.left
    place.lines, place.left = place.lines + 1, 0
    bound.lines = bound.lines + 1
    return left
end


local function write(bound, first, second, third, ...)
    local name = table.concat({ first, second or "", third or "" })
    local left = left_out(name, bound)
    if not left then
        return
    end
    local message = table.concat({ name, ... })
    if left > 0 then
        message = message .. " (and " .. left .. " more since the last such line)"
    end
    ngx.log(bound.level, (string.gsub(message, "[%c\127]", escape)))
end


-- The first three arguments say where it is and about which host: lines that share
-- them count as one place.
function _M.err(...)
    write(errors, ...)
end


-- The same for notices that a setting asks for.
function _M.notice(...)
    write(notices, ...)
end


-- The same for a request that a policy refuses. NGINX adds the client and the request.
function _M.refusal(...)
    write(refusals, ...)
end


return _M
