-- Paths that lead to one route here, and may be read as the path of another one, with other
-- access, by the backend.
local hosts = require "headgate.host"
local targets = require "headgate.target"

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
            or string_find(target, "%2E", 1, true)) and targets.has_dot_segment(target)
end


-- is_read_otherwise(find, request) reports whether a server that removes parameters from the
-- path ("/a;b=c/d"), takes backslashes for slashes, or does both, would find what other
-- clients may ask for. find(request, path): the route of a path, see host:find.
function _M.is_read_otherwise(find, request)
    local path, route = request.path, request.route
    local turned = string_gsub(path, "\\", "/")
    local bare = string_gsub(path, ";[^/]*", "")
    local both = string_gsub(turned, ";[^/]*", "")
    for _, other in ipairs({ turned, bare, both }) do
        other = string_gsub(other, "//+", "/")
        if other ~= path then
            local found, err = find(request, other)
            if not found and err or found and not hosts.same_access(route, found) then
                return true
            end
        end
    end
    return false
end


return _M
