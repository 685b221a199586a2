-- What NGINX's configuration says to Lua. Filled once by boot.init, before
-- there are workers, and only read afterwards.
local _M = {
    -- The directory of everything that the process reads and writes.
    run_dir = nil,
    -- Numbers of the shared dictionaries in use and of those to copy from.
    dictionary = nil,
    previous_dictionary = nil,
    -- The name of the profile that `location /` has.
    default_profile = nil,
    -- The ports of the listeners, for calls to this very NGINX and for redirects
    -- that name them.
    http_port = nil,
    https_port = nil,
    -- Where names that nobody has answer 200.
    health_path = nil,
    -- Whether TLS handshakes for names that nobody has are ended.
    reject_unknown = nil,
    -- Whether the access log is written.
    access_log = nil,
    -- Bytes of the stack of a match.
    jit_stack = nil,
    -- How many endpoints a request may ask where nothing else is said, and at most.
    tries = nil,
    max_tries = nil,
    -- The variables that features declared, each with what it may hold: "line" for a
    -- part of a header line, "target" for a path with a query.
    variables = nil,
    -- Which configuration this is: each reload has a higher number.
    generation = nil,
}


return _M
