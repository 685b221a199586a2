-- Variables of nginx.conf that directives of snippets read: internal/feature/snippet/settings.go.
local program = require "headgate.program"
local requests = require "headgate.request"

local _M = {}

local fill = program.fill
local pairs = pairs


function _M.request_headers(policy, request)
    local values = {}
    program.state(request)
    for name, template in pairs(policy.variables) do
        values[name] = fill(template, request)
    end
    requests.set_variables(values)
end


return _M
