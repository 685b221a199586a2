-- What is known of a request over its phases, and the only writer of NGINX's
-- variables.
--
-- The table of a request is its ngx.ctx. A jump into a profile's location
-- empties that, so before it the table is put into a slot whose number a
-- variable carries; the location's log phase frees the slot.
local request_id = require "headgate.request_id"

local _M = {}

local ngx = ngx
local ngx_var = ngx.var
local string_find = string.find
local string_gsub = string.gsub
local table_new = require "table.new"
local tonumber = tonumber

local slots = {}
local free = {}
local free_count = 0
local slot_count = 0


-- new() -> the request's table, with
--   host_name   the name that the client asked for, lower case, no port
--   name        the name unit that answers for it
--   path        the normalised path
--   revision    what was applied when the request came
--   route       the route that matched
--   backend     the backend to ask, if the route has one
--   tried       whether an endpoint was asked
--   globals     what features have for all requests, by feature
function _M.new()
    local request = table_new(0, 8)
    ngx.ctx = request
    return request
end


-- The table of this request, nil if it never got one.
function _M.current()
    local request = ngx.ctx
    if request.route then
        return request
    end
    local slot = ngx_var.hg_request
    request = slot and slots[tonumber(slot)]
    if request then
        ngx.ctx = request
    end
    return request
end


-- Keeps the request's table over a jump.
function _M.keep(request)
    local slot
    if free_count > 0 then
        slot = free[free_count]
        free_count = free_count - 1
    else
        slot_count = slot_count + 1
        slot = slot_count
    end
    slots[slot] = request
    ngx_var.hg_request = slot
end


-- Ends what keep began.
function _M.release()
    local slot = tonumber(ngx_var.hg_request)
    if slot and slots[slot] then
        slots[slot] = nil
        free_count = free_count + 1
        free[free_count] = slot
    end
end


-- The number of tables that are kept.
function _M.kept()
    return slot_count - free_count
end


-- line cuts what would end a header line: variables are written out raw.
local function line(value)
    if string_find(value, "[%z\r\n]") then
        return (string_gsub(value, "[%z\r\n]", ""))
    end
    return value
end


-- The Host that the backend is told, where it is not the client's own line.
function _M.set_backend_host(host)
    ngx_var.hg_host = line(host)
end


-- Names the request in the place of NGINX's costlier $request_id.
function _M.set_id()
    local id = request_id.next()
    if id then
        ngx_var.hg_id = id
    end
end


-- Tells a backend what it stands in for.
function _M.set_fallback(fallback)
    local set = ngx.req.set_header
    set("X-Code", "503")
    set("X-Format", ngx_var.http_accept)
    set("X-Namespace", fallback.namespace)
    set("X-Ingress-Name", fallback.ingress)
    set("X-Service-Name", fallback.service)
    set("X-Service-Port", fallback.port)
end


-- The backend's name in the access log.
function _M.set_backend_label(label)
    ngx_var.proxy_upstream_name = label
end


return _M
