-- The directive expires: sets Expires and Cache-Control.
local program = require "headgate.program"

local _M = {}

local ngx_header = ngx.header
local ngx_http_time = ngx.http_time
local ngx_parse_http_time = ngx.parse_http_time
local ngx_time = ngx.time
local os_date = os.date
local os_time = os.time
local string_gmatch = string.gmatch
local string_match = string.match

local DAY = 86400

local EPOCH = "Thu, 01 Jan 1970 00:00:01 GMT"
local MAX = "Thu, 31 Dec 2037 23:55:55 GMT"
local MAX_AGE = "max-age=315360000"

-- Values of a variable: each is a table of its own.
local UNITS = { y = 365 * DAY, M = 30 * DAY, w = 7 * DAY, d = DAY, h = 3600, m = 60, s = 1, [""] = 1 }


-- seconds(text) -> a time as in nginx.conf, nil if it is none. Each unit may stand once, the
-- larger ones first.
local function seconds(text)
    if not string_match(text, "^%d[%d%s%a]*$") then
        return nil
    end
    local sum, last, length = 0, nil, 0
    for number, unit, space in string_gmatch(text, "(%d+)(%a?)(%s*)") do
        local size = UNITS[unit]
        if not size or last and size >= last or last == 0 then
            return nil
        end
        sum, last, length = sum + number * size, unit == "" and 0 or size, length + #number + #unit + #space
    end
    return length == #text and sum or nil
end


-- read(text, kind) -> kind, seconds of a variable's value. kind is "in" or "modified". What is
-- not a time is "off", as in NGINX.
local function read(text, kind)
    local clock
    if kind == "in" then
        if text == "epoch" or text == "max" or text == "off" then
            return text
        end
        clock = string_match(text, "^@(.*)$")
    end
    if clock then
        local time = seconds(clock)
        if time and time <= DAY then
            return "at", time
        end
        return "off"
    end
    local sign, rest = string_match(text, "^([+-]?)(.*)$")
    local time = seconds(rest)
    if not time then
        return "off"
    end
    return kind, sign == "-" and -time or time
end


-- next_time(seconds) -> the next time at which that many seconds have passed since midnight.
local function next_time(since_midnight, now)
    local day = os_date("*t", now)
    day.hour, day.min, day.sec, day.isdst = 0, 0, since_midnight, nil
    local time = os_time(day)
    if time > now then
        return time
    end
    day.day = day.day + 1
    day.hour, day.min, day.sec = 0, 0, since_midnight
    return os_time(day)
end


-- last_modified is the time of that header, nil if there is none.
local function last_modified()
    local value = ngx_header["Last-Modified"]
    return type(value) == "string" and ngx_parse_http_time(value) or nil
end


local function write(time, control)
    ngx_header["Expires"] = time
    ngx_header["Cache-Control"] = control
end


-- set(expires, request) sets both headers. expires: { kind, seconds, value }, see Expires in
-- internal/syntax/snippet/program.go.
function _M.set(expires, request)
    local kind, offset = expires.kind, expires.seconds or 0
    if expires.value then
        kind, offset = read(program.fill(expires.value, request), kind)
    end
    if kind == "off" then
        return
    elseif kind == "epoch" then
        return write(EPOCH, "no-cache")
    elseif kind == "max" then
        return write(MAX, MAX_AGE)
    end
    local now = ngx_time()
    local time = now + offset
    local age = offset
    if kind == "at" then
        time = next_time(offset, now)
        age = time - now
    elseif kind == "modified" and offset ~= 0 then
        time = (last_modified() or now) + offset
        age = time - now
    end
    return write(ngx_http_time(time), age < 0 and "no-cache" or "max-age=" .. age)
end


return _M
