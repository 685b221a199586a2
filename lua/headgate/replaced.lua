-- Requests that Headgate makes of itself for a page of a host, instead of an error that the client would
-- get (error_page.lua). They are like requests of the client for that page, but that no other
-- page replaces it, and that the response may have the status of the error.
local settings = require "headgate.settings"

local _M = {}

local ngx_header = ngx.header
local ngx_var = ngx.var
local tonumber = tonumber

-- X-Headgate-Page has the status of the error, or this for the page's own.
local OWN = -1
-- Says of a response that it is not the page.
local MADE = "X-Headgate-Made"


-- socket(scheme) -> the socket for such requests, by which nothing else comes
function _M.socket(scheme)
    return "unix:" .. settings.run_dir .. "/tmp/page_" .. scheme .. ".sock"
end

-- is_page() -> whether this request is one of these
function _M.is_page()
    return false
end


-- status() -> the status of the error that the response is to keep, nil for its own
function _M.status() end


if settings.pages then
    local HTTP, HTTPS = _M.socket("http"), _M.socket("https")


    function _M.is_page()
        -- Most requests come by a port.
        if ngx_var.server_port ~= "" then
            return false
        end
        local address = ngx_var.server_addr
        return address == HTTP or address == HTTPS
    end


    function _M.status()
        local status = _M.is_page() and tonumber(ngx_var.http_x_headgate_page)
        return status and status ~= OWN and status or nil
    end
end


-- Notes that the response is not the page: as in NGINX, it has a status of its own.
function _M.mark()
    if _M.is_page() then
        ngx_header[MADE] = "1"
    end
end


-- take() -> whether the response that came was marked
function _M.take()
    local marked = ngx_header[MADE] ~= nil
    ngx_header[MADE] = nil
    return marked
end


_M.OWN = OWN


return _M
