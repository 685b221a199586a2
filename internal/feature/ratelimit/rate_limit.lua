-- Limits of clients: requests in a time, requests in progress, and the rate of responses.
-- The order is NGINX's: a request that the last limit refuses has counted for the first ones.
local buckets = require "headgate.feature.rate_limit.buckets"
local client = require "headgate.client"
local connections = require "headgate.feature.rate_limit.connections"
local log = require "headgate.log"
local networks = require "headgate.networks"
local requests = require "headgate.request"
local template = require "headgate.template"
local units = require "headgate.units"
local windows = require "headgate.feature.rate_limit.windows"

local _M = {}

local fill = template.fill
local ngx_md5_bin = ngx.md5_bin

-- As in NGINX's own zones, an address within a longer key is of its bytes: no other client can
-- write what follows it so that both keys are the same. An address of IPv4 is one, however it
-- came.
local function address_of()
    return client.address() or ""
end


local OWN = { remote_addr = address_of, the_real_ip = address_of }

-- Longer keys are hashed, in bytes.
local MAX_KEY = 64


-- policy: { id, buckets, status, connections, connection_status, key, allow, window, rate,
-- rate_after }. window: { limit, seconds, status, key, allow }, the limit over all replicas
function _M.applies(policy, phase)
    if phase == "preaccess" then
        return policy.id ~= nil
    elseif phase == "log" then
        return policy.connections ~= nil
    end
    return policy.rate ~= nil
end


-- is_allowed reports whether the client is not limited. A list that is not in the memory has no
-- address: the limits hold.
local function is_allowed(limits, request, address)
    if not limits.allow or not address then
        return false
    end
    local list = units.content(limits.allow, request.revision)
    return list ~= nil and networks.has(list, address)
end


-- key_of is what the request is counted by, nil if it is not limited. limits: a policy, or the
-- window of one
local function key_of(limits, request)
    local address = client.address()
    if is_allowed(limits, request, address) then
        return nil
    end
    if not limits.key then
        return address or ""
    end
    local key = fill(limits.key, request, OWN)
    if key == "" then
        return nil
    end
    -- In front of a hash is what no other key begins with.
    return #key <= MAX_KEY and key or "\0" .. ngx_md5_bin(key)
end


local function refuse(request, status, why)
    log.refusal("host ", request.name.host, why)
    return requests.finish(request, status)
end


-- local_limits are those of each replica alone.
local function local_limits(policy, request)
    local key = key_of(policy, request)
    if not key then
        return
    end
    local namespace = request.route.namespace
    if policy.buckets and not buckets.take(policy, key, namespace) then
        return refuse(request, policy.status, ": limit-rps or limit-rpm refuses the request")
    end
    if policy.connections then
        local counted, refused = connections.enter(policy.id .. key, policy.connections, namespace)
        if refused then
            return refuse(request, policy.connection_status, ": limit-connections refuses the request")
        end
        request.connection_counter = counted
    end
end


function _M.preaccess(policy, request)
    if policy.buckets or policy.connections then
        local_limits(policy, request)
    end
    local window = policy.window
    local key = window and key_of(window, request)
    if key and not windows.take(policy, key, request.route.namespace) then
        return refuse(request, window.status, ": global-rate-limit refuses the request")
    end
end


function _M.request_headers(policy)
    requests.set_rate(policy.rate, policy.rate_after or 0)
end


function _M.log(_, request)
    local counted = request.connection_counter
    if counted then
        request.connection_counter = nil
        connections.leave(counted)
    end
end


return _M
