-- wrk's load over 1,000 hosts. Arguments: the host with %05d for its number, the
-- path, and the step from one number to the next.
local requests = {}
local next_request = 0

function init(arguments)
    for i = 0, 999 do
        requests[i] = wrk.format(nil, arguments[2], { Host = string.format(arguments[1], i * arguments[3]) })
    end
end

function request()
    next_request = (next_request + 1) % 1000
    return requests[next_request]
end
