-- Asks headgate's modules, as a worker has them, how requests are routed. What
-- they have of NGINX itself is stood in for; all else is theirs.
local _M = {}

local ngx = ngx
local string_find = string.find
local string_sub = string.sub
local tonumber = tonumber

-- What route.lua sees of the request.
local seen = { var = {}, header = {}, req = {}, re = ngx.re }
-- The units of the batch by their key in shared memory, which are there as
-- long as the batch is, and a revision that moves before and after it.
local payloads, revision = {}, 0
local letters = { host = "h:", name = "n:", patterns = "p:", globals = "g:" }
local names, route, units

-- How a decision came out: a status, or the route.
local outcome

-- A clock that goes so fast that expressions have all their time for each decision.
local time = 0


local function stop(what)
    return function(detail)
        outcome = type(detail) == "number" and tostring(detail) or what .. (detail and " " .. detail or "")
        error(seen)
    end
end


local function version_of(payload)
    return "0 " .. revision .. " " .. revision .. " " .. #payload .. " "
end


local function counters()
    return { refuse = function() end, add_time = function() end }
end


local function memory()
    return {
        revision = function() return revision end,
        flag = function(name) return name == "loaded" end,
        version = function(key) return payloads[key] and version_of(payloads[key]) end,
        payload = function(key) return payloads[key], payloads[key] and version_of(payloads[key]) end,
        note_given_up = function() end,
    }
end


-- A request's table that ends the request when it gets its route. All else of
-- headgate.request that route.lua asks for on the way is its own.
local function requests()
    local own = require "headgate.request"
    local meta = {
        __newindex = function(request, field, value)
            rawset(request, field, value)
            if field == "route" then
                outcome = table.concat({
                    "route", value.location or "@p_default", value.backend or "",
                    value.fallback and value.fallback.backend or "",
                    tostring(value.default or false), tostring(value.denied or false),
                }, " ")
                error(seen)
            end
        end,
    }
    return { new = function() return setmetatable({}, meta) end, with_query = own.with_query, whole = own.whole }
end


-- Loads headgate's modules with what stands in for NGINX.
function _M.init()
    local settings = require "headgate.settings"
    settings.generation, settings.default_profile, settings.health_path = 0, "p_default", "/healthz"
    package.loaded["headgate.memory"] = memory()
    package.loaded["headgate.counters"] = counters()
    package.loaded["headgate.request"] = requests()
    package.loaded["headgate.feature.some"] = {}
    seen.exit, seen.exec = stop("exit"), stop("exec")
    seen.now = function() return time end
    seen.redirect = function() outcome = "301"; error(seen) end
    _G.ngx = setmetatable(seen, { __index = ngx })
    route, names, units = require "headgate.route", require "headgate.names", require "headgate.units"
    _G.ngx = ngx
end


-- decide(host, path) -> how it comes out, the name that answered and the one
-- whose certificate is shown
local function decide(host, path)
    seen.var.host, seen.var.http_host, seen.var.uri, seen.var.scheme = host, host, path, "http"
    seen.var.remote_addr, seen.var.realip_remote_addr = "127.0.0.1", "127.0.0.1"
    outcome = "nothing"
    time = time + 1000
    local ok, err = pcall(route.run)
    if ok or err ~= seen then
        outcome = "error: " .. tostring(err)
    end
    local name = names.for_host(host, revision)
    local shown = names.for_certificate(host, revision)
    local who = name and name.name .. " of " .. name.host or ""
    return outcome .. " | " .. who .. " | " .. (shown and shown.name or "")
end


-- Texts in a batch and in its answer have their length before them: "3:abc".
local function reader(text)
    local at = 1
    return function()
        local colon = string_find(text, ":", at, true)
        local length = tonumber(string_sub(text, at, colon - 1))
        at = colon + length + 1
        return string_sub(text, colon + 1, colon + length)
    end
end


-- Answers a batch: the number of units, kind, name and payload of each, the
-- number of questions, host and path of each.
function _M.batch()
    ngx.req.read_body()
    local next_text = reader(ngx.req.get_body_data())
    local loaded, answers = {}, {}
    revision = revision + 1
    for i = 1, tonumber(next_text()) do
        local kind, name = next_text(), next_text()
        loaded[i] = { kind, name }
        payloads[letters[kind] .. name] = next_text()
    end
    for i = 1, tonumber(next_text()) do
        local answer = decide(next_text(), next_text())
        answers[i] = #answer .. ":" .. answer
    end
    -- A worker goes on with what it has where a newer unit is broken. The next
    -- batch is not a newer one of this.
    payloads, revision = {}, revision + 1
    for _, key in ipairs(loaded) do
        local kind, name = key[1], key[2]
        -- Of patterns and globals there is one unit, without a name.
        units[kind](name ~= kind and name or revision, revision)
    end
    ngx.print(table.concat(answers))
end


local function text(value)
    value = value or ""
    return #value .. ":" .. value
end


-- Answers with the host, the path and the query of the request.
function _M.read()
    ngx.status = 200
    ngx.print(text(ngx.var.host), text(ngx.var.uri), text(ngx.var.args))
    ngx.exit(200)
end


-- The release of the library that Lua matches with.
function _M.version()
    local ffi = require "ffi"
    pcall(ffi.cdef, "const char *ngx_http_lua_ffi_pcre_version(void);")
    return ffi.string(ffi.C.ngx_http_lua_ffi_pcre_version())
end


return _M
