-- Headers whose names differ by underscores for hyphens alone, while clients may send such
-- names. Many backends take X_Forwarded_For for X-Forwarded-For, and so do NGINX's variables. So
-- what Headgate sets or removes, no client can send by a lookalike.
local settings = require "headgate.settings"

local _M = {}

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


-- remove removes all lookalikes of a header, and not the header itself.
local function remove(name)
    local same, lower = hyphened(name), string_lower(name)
    for sent in pairs(ngx_req.get_headers(0, true)) do
        if hyphened(sent) == same and string_lower(sent) ~= lower then
            ngx_req.clear_header(sent)
        end
    end
end


-- set(name, value) sets a header of the request that no client may set, nil to remove it.
_M.set = ngx_req.set_header


if settings.own_headers then
    function _M.set(name, value)
        remove(name)
        return ngx_req.set_header(name, value)
    end
end


return _M
