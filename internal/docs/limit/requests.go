package limit

func requests() Group {
	return Group{"Requests", "", []Limit{
		{"Connections", "worker", text(workerGo, `usualConnections += (\d+)`, count), "max-worker-connections", "idle connections are closed; if there are none, new ones", ""},
		{"Line of a request, and one header", "request", text(clientHeaderGo, `buffers\{"\d+ (\d+)k"`, kibibytes), "large-client-header-buffers", "414, or 400", ""},
		{"Buffers for request headers of this size", "request", text(clientHeaderGo, `buffers\{"(\d+) `, count), "large-client-header-buffers", "400", ""},
		{"Time for the header of a request", "request", text(processGo, `Key: "client-header-timeout", Default: ([^,]+),`, duration), "client-header-timeout", "408, and the connection is closed", ""},
		{"Time between two reads of a body", "request", text(processGo, `Key: "client-body-timeout", Default: ([^,]+),`, duration), "client-body-timeout", "408", ""},
		{"Requests over one client connection", "connection", text(processGo, `Key: "keep-alive-requests", Default: (\d+),`, count), "keep-alive-requests", "the connection is closed", ""},
		{"Body", "request", text("internal/feature/proxying/proxying.go", `Key: "proxy-body-size", Default: ([^,]+),`, bytes), "proxy-body-size", "413", ""},
		{"Part of a body that is kept in memory", "request", constant("internal/feature/proxying/proxying.go", "maxKept", bytes), "", "the rest is in a file", ""},
		{"Tries, if an Ingress asks for more", "request", constant("internal/model/limits.go", "MaxTries", count), "", "the annotation has no effect; `InvalidValue`", ""},
		{"Parameters (`fastcgi-params-configmap`)", "ConfigMap", constant("internal/feature/backendprotocol/parameter.go", "maxParameters", count), "", "the paths of the Ingress answer 503; `InvalidValue`", ""},
		{"Their values together", "ConfigMap", constant("internal/feature/backendprotocol/parameter.go", "maxLength", bytes), "", "the same", ""},
		{"Names of parameters that the administrator can add", "instance", constant("internal/model/parameter.go", "maxParameterNames", count), "", "the key has no effect; `InvalidValue`", ""},
		{"Idle connections to endpoints", "worker", text(processGo, `Key: "upstream-keepalive-connections", Default: (\d+),`, count), "upstream-keepalive-connections", "the one that was not used for longest is closed", ""},
	}}
}

func mirrors() Group {
	return Group{"Mirrors", "Copies of requests (`mirror-target`). Nothing of this delays or fails a request.", []Limit{
		{"Places for copies", "worker", constant(mirrorLua, "PLACES", count), "", "copies are dropped; `headgate_refusals_total{reason=\"mirror\"}`, one line a minute in the log", ""},
		{"Part of the free places that a namespace can have: one of", "namespace and worker", constant(mirrorLua, "SHARE", count), "", "the same", ""},
		{"Part of a body in memory that takes a further place", "copy", constant(mirrorLua, "BLOCK", bytes), "", "", ""},
		{"Time for the connection, and for the TLS handshake", "copy", constant(mirrorLua, "CONNECT_TIMEOUT", seconds), "", "the copy ends; one line a second in the log", ""},
		{"Time for all of it", "copy", constant(mirrorLua, "TIMEOUT", seconds), "", "the same", ""},
		{"Response that is read", "copy", constant(mirrorLua, "MAX_RESPONSE", bytes), "", "the connection is closed", ""},
	}}
}

func clients() Group {
	return Group{"Limits of clients", "By `limit-rps`, `limit-rpm`, `limit-connections` and `global-rate-limit`. What finds no room is not limited.", []Limit{
		{"Counters of requests, of connections, and of requests over all replicas", "namespace", constant(ownersLua, "COUNTERS", count), "", "further clients are not limited; `headgate_unlimited_requests_total`, one line a minute in the log", ""},
		{"Memory for counters of requests", "instance", text(rateLimitGo, `NewName\("hg_buckets"\), Size: ([^}]+)\}`, bytes), "", "the same. A counter takes 192 bytes with the address of a client, and up to 384 with another key: ten, or five, namespaces with 32,768 each fill it", ""},
		{"Memory for counters of connections", "instance", text(rateLimitGo, `NewName\("hg_connections"\), Size: ([^}]+)\}`, bytes), "", "the same", ""},
		{"Memory for counters over all replicas", "instance", text(rateLimitGo, `NewName\("hg_windows"\), Size: ([^}]+)\}`, bytes), "", "the same. A client has two at least, one of the window before", ""},
		{"Time between two exchanges of these with the store", "instance", constant("internal/cluster/limitstore/limitstore.go", "Interval", duration), "", "replicas do not know what others let pass meanwhile", ""},
		{"The same while the store is away", "instance", constant("internal/cluster/limitstore/limitstore.go", "RetryInterval", duration), "", "each replica counts alone", ""},
		{"Time for the store to answer", "exchange", constant("internal/cluster/limitstore/limitstore.go", "Timeout", duration), "", "the same; `headgate_limit_store_up` is 0, one line in the log", ""},
		{"Counters that wait for the store", "instance", constant("internal/cluster/limitstore/limitstore.go", "MaxPending", count), "", "other replicas do not know them until the next request", ""},
		{"Key of a client that is not hashed", "request", constant("internal/feature/ratelimit/rate_limit.lua", "MAX_KEY", bytes), "", "", ""},
	}}
}

func failingEndpoints() Group {
	return Group{"Failing endpoints", "Of backends with at least two endpoints.", []Limit{
		{"Endpoints that are avoided, of a backend", "worker", constant("internal/model/balancing.go", "EjectionShare", percent), "ejection-max-share", "further ones get requests", ""},
		{"Endpoints that a worker remembers to have failed", "worker", constant(healthLua, "STATES", count), "", "further ones get requests", ""},
		{"Part of the free ones that a namespace can have: one of", "namespace and worker", constant(healthLua, "SHARE", count), "", "the same", ""},
		{"Wait until the first probe", "endpoint and worker", constant(probeLua, "FIRST_WAIT", seconds), "", "", ""},
		{"Longest wait until the next one", "endpoint and worker", constant(probeLua, "LONGEST_WAIT", seconds), "", "", ""},
		{"Time of a probe", "probe", constant(probeLua, "CONNECT_TIMEOUT", seconds), "", "it has failed", ""},
		{"Probes at a time", "worker", constant(probeLua, "PROBES", count), "", "further ones wait", ""},
		{"Part of the free ones that a namespace can have: one of", "namespace and worker", constant(probeLua, "SHARE", count), "", "the same", ""},
		{"Retries, of the requests to a backend", "backend and worker", constant("internal/model/balancing.go", "RetryShare", percent), "retry-budget", "the client gets the response or error of the first try; `headgate_refusals_total{reason=\"retry\"}`, one line a minute in the log", ""},
		{"Retries in any case, a second", "backend", constant(retriesLua, "RATE", count), "", "the same", ""},
		{"The same at once", "backend", constant(retriesLua, "SAVED", count), "", "the same", ""},
	}}
}

func authentication() Group {
	return Group{"Authentication", "", []Limit{
		{"Threads that check passwords", "worker", constant(passwordLua, "MAX_THREADS", count), "", "checks wait", "A13"},
		{"Checks at a time", "worker", constant(passwordLua, "MAX_RUNNING", count), "", "503", "A13"},
		{"The same", "namespace and worker", constant(passwordLua, "MAX_OF_NAMESPACE", count), "", "503", "A13"},
		{"The same", "Secret and worker", constant(passwordLua, "MAX_OF_USERS", count), "", "503", "A13"},
		{"Wait for a check", "request", constant(passwordLua, "TIMEOUT", seconds), "", "503", ""},
		{"CAs of backends (`proxy-ssl-secret`)", "Secret", constant("internal/feature/backendprotocol/secret.go", "maxAuthorities", count), "", "the paths of the Ingress answer 503; `InvalidValue`", "A11"},
		{"Certificates that are shown to backends", "Secret", constant("internal/feature/backendprotocol/secret.go", "maxCertificates", count), "", "the same", "A11"},
		{"CAs of clients (`auth-tls-secret`)", "Secret", constant("internal/feature/clientcert/secret.go", "maxAuthorities", count), "", "all paths of the host answer 403; `InvalidValue`", ""},
		{"Their subjects together", "Secret", constant("internal/feature/clientcert/secret.go", "maxNames", bytes), "", "the same", ""},
		{"Revocation lists", "Secret", constant("internal/feature/clientcert/secret.go", "maxLists", count), "", "the same", ""},
		{"All of the Secret", "Secret", constant("internal/feature/clientcert/secret.go", "maxBytes", bytes), "", "the same", ""},
		{"Cost of bcrypt", "user", constant("internal/feature/basicauth/hash.go", "maxBcrypt", count), "", "the user can't log in; `InvalidValue`", "A13"},
		{"Rounds of SHA-256 and SHA-512", "user", constant("internal/feature/basicauth/hash.go", "maxRounds", count), "", "the same", "A13"},
		{"Length of a password", "request", constant(passwordLua, "MAX_BYTES", bytes), "", "401", ""},
		{"The same, for `$5$` and `$6$`", "request", constant(passwordLua, "MAX_BYTES_IN_ROUNDS", bytes), "", "401", "A13"},
		{"Size of a Secret with users", "Secret", constant("internal/feature/basicauth/basicauth.go", "maxBytes", bytes), "", "503; `TooMany`", ""},
		{"Passwords that are remembered", "worker", constant(passwordLua, "MAX_REMEMBERED", count), "", "checked again", ""},
		{"Time for which they are", "password", constant(passwordLua, "CACHE_SECONDS", seconds), "", "checked again", ""},
		{"Cached responses of auth services", "instance", text("internal/feature/externalauth/resources.go", `NewName\("hg_checks"\), Size: ([^}]+)\}`, bytes), "", "the service is asked again", ""},
		{"Headers of `proxy-set-headers`", "process", constant("internal/syntax/header/header.go", "maxHeaders", count), "", "503; `TooMany`", ""},
		{"Headers of `add-headers`", "process", constant("internal/syntax/header/header.go", "maxHeaders", count), "", "none are added; `TooMany`", ""},
		{"Headers of `auth-proxy-set-headers`", "Ingress", constant("internal/syntax/header/header.go", "maxHeaders", count), "", "503; `TooMany`", ""},
	}}
}
