-- Sets the cookie of a session that begins, or moves to another endpoint.
local client = require "headgate.client"

local _M = {}

local ngx_cookie_time = ngx.cookie_time
local ngx_header = ngx.header
local ngx_time = ngx.time
local ngx_var = ngx.var
local math_max = math.max
local string_find = string.find
local string_match = string.match
local tonumber = tonumber
local type = type

-- The first version of UC Browser that reads SameSite=None.
local UC_MAJOR, UC_MINOR, UC_BUILD = 12, 13, 2


local function is_old_uc(agent)
    local major, minor, build = string_match(agent, "UCBrowser/(%d+)%.(%d+)%.(%d+)")
    if not major then
        return false
    end
    major, minor, build = tonumber(major), tonumber(minor), tonumber(build)
    if major ~= UC_MAJOR then
        return major < UC_MAJOR
    end
    if minor ~= UC_MINOR then
        return minor < UC_MINOR
    end
    return build < UC_BUILD
end


-- reads_none reports whether a browser reads SameSite=None. Those that do not are listed at
-- https://www.chromium.org/updates/same-site/incompatible-clients: Chrome 51 to 66, old
-- versions of UC Browser, all browsers of iOS 12, and Safari and apps of macOS 10.14.
local function reads_none(agent)
    if string_find(agent, "UCBrowser/", 1, true) then
        return not is_old_uc(agent)
    end
    if string_find(agent, "(iP", 1, true) and string_find(agent, " OS 12_", 1, true) then
        return false
    end
    local chrome = string_match(agent, "Chrom%a*/(%d+)")
    if chrome then
        chrome = tonumber(chrome)
        return chrome < 51 or chrome > 66
    end
    return not (string_find(agent, "Mac OS X 10_14", 1, true) and string_find(agent, "AppleWebKit", 1, true))
end


local function cookie(policy, session)
    local text = session .. policy.attributes
    if not policy.secure and ngx_var.scheme == "https" then
        text = text .. "; Secure"
    end
    if policy.none and reads_none(client.header("user_agent") or "") then
        text = text .. "; SameSite=None"
    end
    if policy.expires then
        text = text .. "; Expires=" .. ngx_cookie_time(math_max(0, ngx_time() + policy.expires))
    end
    return text
end


-- policy: { attributes, secure, none, expires }, see affinity.go
-- request.session: "NAME=VALUE" if picker.lua wants the cookie to be set
function _M.header_filter(policy, request)
    local session = request.session
    if not session then
        return
    end
    local lines = ngx_header["Set-Cookie"] or {}
    if type(lines) ~= "table" then
        lines = { lines }
    end
    lines[#lines + 1] = cookie(policy, session)
    ngx_header["Set-Cookie"] = lines
end


return _M
