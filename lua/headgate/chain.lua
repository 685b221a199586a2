-- The client's address, where it comes by a header and the PROXY protocol together, or by a
-- header that NGINX does not join if it has several lines.
--
-- NGINX takes an address from one header, and does so twice: before the first phase that Lua
-- has, and before the access phase, if it found none. So this module writes what is known into
-- one header, with the nearest address last, and has the request pass through a location
-- where NGINX reads it. Then the request is routed. All ask for $remote_addr, as always; until
-- then nothing may, since NGINX remembers what it answered.
local settings = require "headgate.settings"

local _M = {}

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_req = ngx.req
local ngx_var = ngx.var
local string_lower = string.lower
local table_concat = table.concat
local type = type

local CHAIN = "X-Headgate-Chain"

local name = string_lower(settings.address_header or "")


-- header is the value of the header with addresses, "" if there is none.
local function header()
    if name == "x-forwarded-for" then
        return ngx_var.http_x_forwarded_for or ""
    end
    -- Older versions of NGINX have the first line alone in the variable.
    local value = ngx_req.get_headers(0)[name]
    if type(value) == "table" then
        return table_concat(value, ", ")
    end
    return type(value) == "string" and value or ""
end


function _M.run()
    -- Subrequests of Headgate have the address already.
    if ngx.is_subrequest then
        return
    end
    local chain, nearest = header(), ngx_var.proxy_protocol_addr or ""
    if chain ~= "" and nearest ~= "" then
        chain = chain .. ", " .. nearest
    elseif nearest ~= "" then
        chain = nearest
    end
    ngx_req.set_header(CHAIN, chain ~= "" and chain or nil)
    return ngx_exec("@client")
end


-- Continues behind NGINX's look at the header, in the access phase. Routing needs the rewrite phase.
function _M.finish()
    ngx_req.clear_header(CHAIN)
    return ngx_exec("@route")
end


return _M
