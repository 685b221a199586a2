-- Headers whose names differ by underscores for hyphens alone, while clients may send such
-- names. Many backends take X_Forwarded_For for X-Forwarded-For, and so do NGINX's variables. So
-- what Headgate sets or removes, no client can send by a lookalike.
local settings = require "headgate.settings"

local _M = {}

local ipairs = ipairs
local ngx_req = ngx.req
local pairs = pairs
local string_find = string.find
local string_gsub = string.gsub
local string_lower = string.lower

-- What headers of Headgate and of other proxies begin with, and what says where a request ends.
local PREFIXES = { "^x%-forwarded%-", "^x%-original%-", "^x%-auth%-request%-", "^x%-headgate%-", "^ssl%-client%-" }
local FRAMING = {
    "content-length", "transfer-encoding", "http2-settings", "keep-alive", "proxy-connection", "proxy-authorization",
}

local own = {}
for _, list in ipairs { FRAMING, settings.own_headers or {} } do
    for _, name in ipairs(list) do
        own[name] = true
    end
end


local function is_own(name)
    if own[name] then
        return true
    end
    for i = 1, #PREFIXES do
        if string_find(name, PREFIXES[i]) then
            return true
        end
    end
    return false
end


-- hyphened is a name as its lookalikes without underscores have it.
local function hyphened(name)
    return (string_gsub(string_lower(name), "_", "-"))
end


-- run removes the lookalikes of headers that Headgate has of its own.
function _M.run()
    for name in pairs(ngx_req.get_headers(0, true)) do
        if string_find(name, "_", 1, true) and is_own(hyphened(name)) then
            ngx_req.clear_header(name)
        end
    end
end


local NONE = {}


-- of(name, sent) -> the names of the lookalikes of a header among those that a client sent, and not
-- the header itself
function _M.of()
    return NONE
end


-- set(name, value) sets a header of the request that no client may set, nil to remove it.
_M.set = ngx_req.set_header


if settings.own_headers then
    function _M.of(name, sent)
        local same, lower, list = hyphened(name), string_lower(name), NONE
        for other in pairs(sent) do
            if hyphened(other) == same and string_lower(other) ~= lower then
                list = list == NONE and {} or list
                list[#list + 1] = other
            end
        end
        return list
    end

    function _M.set(name, value)
        for _, other in ipairs(_M.of(name, ngx_req.get_headers(0, true))) do
            ngx_req.clear_header(other)
        end
        return ngx_req.set_header(name, value)
    end
end


return _M
