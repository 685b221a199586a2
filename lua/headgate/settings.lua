-- Settings from nginx.conf. boot.init sets them before there are workers; they never
-- change after that.
local _M = {
    -- The directory of everything that the process reads and writes.
    run_dir = nil,
    -- Numbers of the shared dictionaries in use and of those to copy from.
    dictionary = nil,
    previous_dictionary = nil,
    -- The name of the profile that `location /` has.
    default_profile = nil,
    -- The ports of the listeners, for calls to this NGINX and for redirects
    -- that name them.
    http_port = nil,
    https_port = nil,
    -- The path that answers 200 for names that no host has.
    health_path = nil,
    -- Whether TLS handshakes for names that no host has are rejected.
    reject_unknown = nil,
    -- Whether the access log is written.
    access_log = nil,
    -- Bytes of the stack of a match.
    jit_stack = nil,
    -- The default and the maximum of tries of a request.
    tries = nil,
    max_tries = nil,
    -- The variables that features declared, each with what it may hold: "line" for a
    -- part of a header line, "target" for a path with a query.
    variables = nil,
    -- Which configuration this is: each reload has a higher number.
    generation = nil,
}


return _M
