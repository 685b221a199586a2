-- Paths that lead to one route here, and may be read as the path of another one, with other
-- access, by the backend.
local hosts = require "headgate.host"
local requests = require "headgate.request"

local _M = {}

local ipairs = ipairs
local string_find = string.find
local string_gsub = string.gsub


-- is_ambiguous reports whether the client's target may mean another path for a
-- server that reads it unchanged than for NGINX, which routes by the path without
-- "..", in any encoding, and without a fragment.
function _M.is_ambiguous(target)
    return string_find(target, "#", 1, true)
        or (string_find(target, "..", 1, true) or string_find(target, "%2e", 1, true)
            or string_find(target, "%2E", 1, true)) and requests.has_dot_segment(target)
end


-- leads_elsewhere reports whether a path leads to another route with other access.
local function leads_elsewhere(host, route, path)
    local other, err = host:find(path)
    return err or other and not hosts.same_access(route, other)
end


-- is_read_otherwise reports whether a server that removes parameters from a path
-- ("/a;b=c/d"), takes backslashes for slashes, or does both, would find what other
-- clients may ask for.
function _M.is_read_otherwise(host, route, path)
    local turned = string_gsub(path, "\\", "/")
    local bare = string_gsub(path, ";[^/]*", "")
    local both = string_gsub(turned, ";[^/]*", "")
    for _, other in ipairs({ turned, bare, both }) do
        other = string_gsub(other, "//+", "/")
        if other ~= path and leads_elsewhere(host, route, other) then
            return true
        end
    end
    return false
end


return _M
