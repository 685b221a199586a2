-- The only place that writes to the error log. NGINX writes a message as it
-- is, so a line end in it would forge a line: control bytes are escaped.
--
-- What clients can make it write is bounded, in each worker: a line a second for
-- each place and host, and LINES a second together.
local _M = {}

local LINES = 50
-- The number of places that are remembered.
local PLACES = 1000

-- By place: the second of its last line, and how many were left out since.
local places = {}
local place_count = 0
local second, lines = 0, 0


local function escape(c)
    return string.format("\\x%02x", string.byte(c))
end


-- left_out -> how many lines of a place were left out since its last one, nil if this
-- one is to be left out as well.
local function left_out(name)
    local now = ngx.time()
    if now ~= second then
        second, lines = now, 0
    end
    local place = places[name]
    if not place then
        if place_count >= PLACES then
            places, place_count = {}, 0
        end
        place = { second = 0, left = 0 }
        places[name] = place
        place_count = place_count + 1
    end
    if place.second == now or lines >= LINES then
        place.left = place.left + 1
        return nil
    end
    local left = place.left
    place.second, place.left = now, 0
    lines = lines + 1
    return left
end


-- The first three arguments say where it is and about which host: lines that share
-- them count as one place.
function _M.err(first, second_part, third, ...)
    local name = table.concat({ first, second_part or "", third or "" })
    local left = left_out(name)
    if not left then
        return
    end
    local message = table.concat({ name, ... })
    if left > 0 then
        message = message .. " (and " .. left .. " more since the last such line)"
    end
    ngx.log(ngx.ERR, (string.gsub(message, "[%c\127]", escape)))
end


return _M
