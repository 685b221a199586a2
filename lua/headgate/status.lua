-- The pages of the status port.
local memory = require "headgate.memory"
local settings = require "headgate.settings"

local _M = {}

local ngx = ngx
local ngx_exit = ngx.exit
local ngx_var = ngx.var

local OK = 200
local NOT_FOUND = 404
local NOT_READY = 500


-- The status of an answer without a body.
local function finish(status)
    ngx.status = status
    ngx.header["Content-Length"] = 0
    return ngx_exit(OK)
end


function _M.run()
    local path = ngx_var.uri
    if path == settings.health_path then
        return finish(OK)
    end
    if path == "/is-dynamic-lb-initialized" then
        return finish(memory.flag("loaded") and OK or NOT_READY)
    end
    if path == "/nginx_status" then
        return ngx.exec("@nginx_status")
    end
    return ngx_exit(NOT_FOUND)
end


return _M
