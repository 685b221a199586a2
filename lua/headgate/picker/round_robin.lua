-- Round robin, the default picker.
--
-- A picker chooses the endpoint of each try. Its module has
--   new(settings, backend, before) -> picker
--     settings: what the backend's picker has in the model; nil if it has none
--     backend: { name, addresses, ports, count }, see backend.lua
--     before: the picker that this worker had for the backend, by the same module,
--       when the unit changed; nil if there is none. It may be returned again.
-- and a picker
--   pick(request, avoid) -> index of an endpoint, 1 to backend.count
--     avoid: nil, or a set of the indexes to avoid where there are others: those that
--       the request tried, and backend.avoid. There is at least one endpoint. It must
--       not end the request. A picker with `holds` may get a third argument, a set
--       that sessions avoid which begin with this try, instead of avoid.
--   weight, if it holds much: what that adds to the packed bytes of the backend's unit
--   done(index, status, connect_time, response_time), if it needs it: the outcome
--     of each try when the request is over; nil for what is not known. Requests of
--     such backends pass through a location with a log phase, others need none.
--   holds(request), share(backend), if it keeps sessions: whether the client's session
--     is at this backend; another backend, the route's canary, with a picker that keeps
--     sessions as this one does. What pick leaves in request.session, the feature has in
--     its header filter.
--
-- A picker belongs to one worker. Workers share state in a dictionary that the feature
-- declares.
local _M = {}

local math_random = math.random
local setmetatable = setmetatable

local methods = {}
local meta = { __index = methods }


function _M.new(_, backend, before)
    if before and backend:same_endpoints(before.backend) then
        before.backend = backend
        return before
    end
    return setmetatable({
        backend = backend,
        -- Workers begin at different endpoints. Else all would use the first one after
        -- each change.
        turn = backend.count > 0 and math_random(backend.count) or 0,
    }, meta)
end


-- If all endpoints are to be avoided, the next one in turn.
function methods.pick(self, _, avoid)
    local count = self.backend.count
    local turn = self.turn
    for _ = 1, count do
        turn = turn < count and turn + 1 or 1
        if not avoid or not avoid[turn] then
            break
        end
    end
    self.turn = turn
    return turn
end


return _M
