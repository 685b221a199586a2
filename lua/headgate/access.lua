-- The access phase, which only profiles have that need it. It can refuse a
-- request but lets none in: nothing here may be combined with `satisfy`, under
-- which an access phase that merely returns grants access.
local features = require "headgate.features"
local requests = require "headgate.request"

local _M = {}


function _M.run()
    local request = requests.current()
    if not request then
        return ngx.exit(503)
    end
    if request.route.phases.access then
        features.run(request.route.phases.access, request)
    end
end


return _M
