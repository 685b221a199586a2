-- The auth check by the client's address.
local client = require "headgate.client"
local log = require "headgate.log"
local networks = require "headgate.networks"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}

local has = networks.has

local FORBIDDEN = 403
local UNAVAILABLE = 503
local NEUTRAL = "neutral"


-- list_of is a list by its name. Without it, no client may pass.
local function list_of(name, request)
    local list = units.content(name, request.revision)
    if not list then
        local route = request.route
        log.err("the addresses of ", route.namespace, "/", route.ingress, " are not in the shared memory")
        return requests.finish(request, UNAVAILABLE)
    end
    return list
end


-- forbid refuses an address. With satisfy_any, another check may let the request pass.
local function forbid(request, why)
    if not request.route.satisfy_any then
        log.refusal("host ", request.name.host, why)
    end
    return FORBIDDEN
end


-- policy: { allow, deny }, names of contents
function _M.authenticate(policy, request)
    local address = client.address()
    local deny, allow = policy.deny, policy.allow
    -- A list of allowed addresses ends with all others denied.
    request.address_lists = allow and "decided" or "open"
    if not address or deny and has(list_of(deny, request), address) then
        request.address_lists = "decided"
        return forbid(request, ": denylist-source-range refuses the client's address")
    end
    if not allow then
        return NEUTRAL
    end
    return has(list_of(allow, request), address)
        or forbid(request, ": allowlist-source-range does not have the client's address")
end


return _M
