-- Rewrites what backends say of themselves in Location, Refresh and Set-Cookie,
-- as NGINX's proxy_redirect, proxy_cookie_domain and proxy_cookie_path do.
local log = require "headgate.log"
local regex = require "headgate.regex"
local requests = require "headgate.request"
local template = require "headgate.template"

local _M = {}

local ngx_header = ngx.header
local string_byte = string.byte
local string_find = string.find
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub
local table_concat = table.concat
local pcall = pcall
local type = type

local DOT = 46

-- The attributes of cookies that are looked at in an answer. What comes behind
-- is left as it is.
local MAX_ATTRIBUTES = 1000


-- by_pattern(rule, value, request) -> what takes the value's place, nil to leave it
local function by_pattern(rule, value, request)
    local owner = request.route.namespace
    local from, err = regex.find(request, owner, value, rule.pattern, rule.caseless and "ijo" or "jo")
    if err and regex.may_log(owner) then
        log.err("match ", rule.pattern, ": ", err)
    end
    return from and rule.to
end


-- What begins with a text, and so for the whole of what stands behind.
local function by_start(rule, value, request)
    if rule.pattern then
        return by_pattern(rule, value, request)
    end
    local from = rule.from
    if string_sub(value, 1, #from) == from then
        return rule.to .. string_sub(value, #from + 1)
    end
end


-- A domain as a whole, in letters of either case. A dot before a text stays.
local function by_domain(rule, value, request)
    if rule.pattern then
        return by_pattern(rule, value, request)
    end
    local dot = string_byte(value) == DOT and "." or ""
    if string_lower(string_sub(value, #dot + 1)) == rule.from then
        return dot .. rule.to
    end
end


-- attribute(policy, text, request) -> "; Name=value" as it is to be, nil to
-- leave it. Each step looks at each byte once: the text is as long as a backend
-- likes, and nothing interrupts Lua's own patterns.
local function attribute(policy, text, request)
    local equals = string_find(text, "=", 1, true)
    if not equals then
        return nil
    end
    local name = string_lower(string_match(text, "^;%s*([^%s=]+)%s*=") or "")
    local replace
    if name == "domain" then
        replace = policy.domain and by_domain
    elseif name == "path" then
        replace = policy.path and by_start
    end
    if not replace then
        return nil
    end
    local first = string_find(text, "%S", equals + 1) or #text + 1
    -- Greedy, so that it comes from the end.
    local value = string_match(text, "^.*%S", first) or ""
    local new = replace(policy[name], value, request)
    return new and string_sub(text, 1, first - 1) .. new .. string_sub(text, first + #value)
end


-- cookie(policy, line, left, request) -> the line as it is to be, and how many
-- attributes may still be looked at of those that were left
local function cookie(policy, line, left, request)
    local parts
    local copied = 0
    local start = string_find(line, ";", 1, true)
    while start and left > 0 do
        left = left - 1
        local following = string_find(line, ";", start + 1, true)
        local stop = following and following - 1 or #line
        local new = attribute(policy, string_sub(line, start, stop), request)
        if new then
            parts = parts or {}
            parts[#parts + 1] = string_sub(line, copied + 1, start - 1)
            parts[#parts + 1] = new
            copied = stop
        end
        start = following
    end
    if parts then
        parts[#parts + 1] = string_sub(line, copied + 1)
        line = table_concat(parts)
    end
    return line, left
end


local function rewrite_cookies(policy, request)
    local lines = ngx_header["Set-Cookie"]
    local left = MAX_ATTRIBUTES
    if type(lines) == "string" then
        local new = cookie(policy, lines, left, request)
        if new ~= lines then
            ngx_header["Set-Cookie"] = new
        end
    elseif lines then
        for i = 1, #lines do
            lines[i], left = cookie(policy, lines[i], left, request)
        end
        ngx_header["Set-Cookie"] = lines
    end
end


-- redirected is by_start for a rule that may have variables. Those of the path's groups can fail;
-- the header then stays.
local function redirected(rule, value, request)
    local new = by_start(rule, value, request)
    if not new or not rule.template then
        return new
    end
    local ok, text = pcall(template.fill_uri, rule.template, request)
    return ok and text .. string_sub(new, #rule.to + 1) or nil
end


local function rewrite_redirect(rule, request)
    local location = ngx_header["Location"]
    if type(location) == "string" then
        local new = redirected(rule, location, request)
        if new then
            ngx_header["Location"] = requests.whole(new, request.route.relative, request.host_name)
        end
    end
    local refresh = ngx_header["Refresh"]
    if type(refresh) == "string" then
        local _, stop = string_find(string_lower(refresh), "url=", 1, true)
        local new = stop and redirected(rule, string_sub(refresh, stop + 1), request)
        if new then
            ngx_header["Refresh"] = string_sub(refresh, 1, stop) .. new
        end
    end
end


-- policy: { redirect, domain, path }, each nil or
--   { to, from, template } or { to, pattern, caseless, template }
function _M.header_filter(policy, request)
    if not request.tried then
        -- No backend was asked: the answer is Headgate's own.
        return
    end
    if policy.redirect then
        rewrite_redirect(policy.redirect, request)
    end
    if policy.domain or policy.path then
        rewrite_cookies(policy, request)
    end
end


return _M
