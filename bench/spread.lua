-- wrk's load over every tenth of 10,000 hosts.
local requests = {}
local next_request = 0

function init()
    for i = 0, 999 do
        requests[i] = wrk.format(nil, nil, { Host = string.format("h-%05d.example.com", i * 10) })
    end
end

function request()
    next_request = (next_request + 1) % 1000
    return requests[next_request]
end
