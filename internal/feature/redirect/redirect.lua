-- Redirects to a fixed URL, and those of the root of a host.
local client = require "headgate.client"
local requests = require "headgate.request"
local template = require "headgate.template"

local _M = {}

local FOUND = 302


-- policy: { root } or { to, code }
function _M.rewrite(policy, request)
    if policy.root then
        if request.path == "/" then
            local target = template.fill_uri(policy.root, request)
            if not request.route.relative then
                target = client.scheme() .. "://" .. requests.authority(request) .. target
            end
            return requests.redirect(request, target, FOUND)
        end
        return
    end
    if request.breaks then
        return
    end
    local target = requests.whole(policy.to, request.route.relative, request.host_name)
    return requests.redirect(request, target, policy.code)
end


return _M
