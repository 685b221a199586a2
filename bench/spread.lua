-- wrk's load over every tenth of 10,000 hosts. Arguments: the host with %05d
-- for its number, and the path.
local requests = {}
local next_request = 0

function init(arguments)
    for i = 0, 999 do
        requests[i] = wrk.format(nil, arguments[2], { Host = string.format(arguments[1], i * 10) })
    end
end

function request()
    next_request = (next_request + 1) % 1000
    return requests[next_request]
end
