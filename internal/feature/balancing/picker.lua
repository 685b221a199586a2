-- The picker of a backend with load-balance or upstream-hash-by: that of its algorithm.
local least_requests = require "headgate.feature.balancing.least_requests"

local ALGORITHMS = {
    chash = require "headgate.feature.balancing.hash",
    ewma = require "headgate.feature.balancing.ewma",
    least_conn = least_requests.of_all,
    random = least_requests.of_two,
}

local _M = {}


function _M.new(settings, backend, before)
    local algorithm = ALGORITHMS[settings.algorithm]
    if not algorithm then
        error("no algorithm " .. tostring(settings.algorithm), 0)
    end
    -- Another algorithm begins again.
    if before and before.algorithm ~= settings.algorithm then
        before = nil
    end
    local picker = algorithm.new(settings, backend, before)
    picker.algorithm = settings.algorithm
    return picker
end


return _M
