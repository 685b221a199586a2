-- Headers of the client that a route's backend gets otherwise than the client sent them. The
-- request has them so until NGINX has made that of the backend: neither Headgate itself nor
-- another backend sees a difference.
--
-- request.replaced has the client's values by name, false for none, or nil.
local lookalikes = require "headgate.lookalikes"

local _M = {}

local ipairs = ipairs
local ngx_req = ngx.req
local pairs = pairs
local rawget = rawget


local function change(request, sent, name, value)
    local before = rawget(sent, name)
    if before == nil and value == nil then
        return
    end
    local replaced = request.replaced or {}
    request.replaced = replaced
    if replaced[name] == nil then
        replaced[name] = before or false
    end
    ngx_req.set_header(name, value)
end


-- replace has the backend get another value of a header than the client sent, nil for none.
-- It gets no lookalike. sent: all headers of the client. name: in lower case.
function _M.replace(request, sent, name, value)
    for _, other in ipairs(lookalikes.of(name, sent)) do
        change(request, sent, other, nil)
    end
    return change(request, sent, name, value)
end


-- restore gives the request back what only the backend did not get.
function _M.restore(request)
    local replaced = request.replaced
    if replaced then
        request.replaced = nil
        for name, value in pairs(replaced) do
            ngx_req.set_header(name, value or nil)
        end
    end
end


return _M
