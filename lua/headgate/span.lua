-- Writes what is known about a sampled request that is over, as JSON: internal/observe/tracing makes its
-- spans. Here is only what must be: most of it is one variable, which joins others.
local cjson = require "cjson.safe"
local client = require "headgate.client"

local _M = {}

local encode = cjson.encode
local ngx_var = ngx.var
local string_byte = string.byte
local string_format = string.format
local string_match = string.match
local string_sub = string.sub

local CARET = 94

-- What is longer is cut. Clients write it.
local MAX_PATH, MAX_FACTS = 1024, 4096

-- By route: what all its requests share.
local of_route = setmetatable({}, { __mode = "k" })


local function path_of(route)
    local path = route.path or "/"
    return (string_byte(path) == CARET and string_sub(path, 2)) or route.slash and path .. "/" or path
end


local function describe(route)
    local made = of_route[route]
    if not made then
        local service = route.backend and not route.default and string_match(route.backend, "^.-/(.-)/")
        made = {
            path = path_of(route), namespace = route.namespace, ingress = route.ingress, service = service or nil,
        }
        of_route[route] = made
    end
    return made
end


-- write(one, finish) -> the text of a request, and how many spans it will have. tracing.lua has its
-- table. Times but its start are in microseconds from there.
function _M.write(one, finish)
    local sent, tries, calls = one.sent, one.tries, one.calls
    return encode({
        trace = one.trace, id = one.id, last = one.last, parent = sent and sent.parent, state = sent and sent.state,
        start = string_format("%.0f", one.start), finish = finish,
        name = one.name, path = string_sub(one.path, 1, MAX_PATH), scheme = client.scheme(),
        route = describe(one.route), tries = tries[1] and tries, calls = calls or nil,
        facts = string_sub(ngx_var.hg_span, 1, MAX_FACTS),
    }), 1 + #tries + (calls and #calls or 0)
end


return _M
