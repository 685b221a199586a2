package limit

// Files that have several limits.
const (
	nginxConf    = "internal/plan/nginx.conf.tmpl"
	budgetLua    = "lua/headgate/budget.lua"
	patternsLua  = "lua/headgate/patterns.lua"
	pathLua      = "lua/headgate/path_patterns.lua"
	unitsLua     = "lua/headgate/units.lua"
	logLua       = "lua/headgate/log.lua"
	healthLua    = "lua/headgate/health.lua"
	ownersLua    = "internal/feature/ratelimit/owners.lua"
	rateLimitGo  = "internal/feature/ratelimit/ratelimit.go"
	probeLua     = "lua/headgate/probe.lua"
	retriesLua   = "lua/headgate/retries.lua"
	trafficLua   = "lua/headgate/traffic_series.lua"
	spansLua     = "lua/headgate/span_report.lua"
	tracesGo     = "internal/feature/opentelemetry/opentelemetry.go"
	mirrorLua    = "internal/feature/mirror/mirror.lua"
	passwordLua  = "internal/feature/basicauth/password.lua"
	slowStartLua = "internal/feature/balancing/slow_start.lua"
	pcreGo       = "internal/pcre/pattern.go"
	processGo    = "internal/feature/process/process.go"
	certificate  = "internal/build/certificate/parse.go"
	eventGo      = "internal/event/event.go"
	checkGo      = "internal/source/check/check.go"
	probeGo      = "internal/source/check/probe.go"
	healthGo     = "internal/feature/healthcheck/healthcheck.go"
	admissionGo  = "internal/admission/server.go"
	selfSignedGo = "internal/selfsigned/keeper.go"
)

// Groups are all limits.
func Groups() []Group {
	return []Group{
		{"Time of regular expressions", "", []Limit{
			{
				"Time of a namespace's expressions, a second", "namespace and worker", text(budgetLua, `EXPRESSIONS = \{\s+rate = ([0-9.]+)`, seconds), "",
				"requests that need its expressions are answered 503; an alias does not match, a canary is not selected; metric `headgate_refusals_total`, one line a minute in the log", "A1, A6",
			},
			{"The same at once", "namespace and worker", text(budgetLua, `EXPRESSIONS = \{\s+rate = [0-9.]+, burst = ([0-9.]+)`, seconds), "", "the same", "A1, A6"},
			{"Time that is not counted", "request", constant(budgetLua, "FREE", seconds), "", "it is counted", ""},
			{"Steps of a match", "match", constant(pcreGo, "MatchLimit", count), "", "the expression fails: 500, unless the next route belongs to another namespace", "A1, A4"},
			{"Stack of a match", "match", constant(pcreGo, "JITStack", bytes), "", "the same", "A4"},
			{"Failures until an expression does not end requests for other namespaces any more", "expression and worker", constant(budgetLua, "MAX_STRIKES", count), "", "it is tried only where its own namespace is concerned; `GivenUp`", "A4"},
			{"Length of a path that is compared with expressions", "request", constant(pathLua, "MAX_PATH", bytes), "", "414, unless the next route belongs to another namespace", "A1"},
			{"Time of an alias that is an expression", "match", constant(patternsLua, "SLOW", seconds), "", "counts as a failure", "A6"},
			{"Failures until an alias is not tried any more", "alias and worker", constant(budgetLua, "MAX_STRIKES", count), "", "the alias has no effect until aliases change; two lines in the log; `GivenUp`", "A6"},
			{"Names whose result is remembered", "worker", constant(patternsLua, "MAX_REMEMBERED", count), "", "all are forgotten", "A6"},
			{"Length of a name that is compared with aliases", "request or handshake", constant(patternsLua, "LONGEST", bytes), "", "it is unknown", "A6"},
			{"Time for which a name is unknown after its expressions were not tried", "name and worker", constant(patternsLua, "SKIPPED", seconds), "", "it is looked up again", "A6"},
		}},
		{"Regular expressions", "They are checked when an Ingress is read.", []Limit{
			{"Paths that are more than plain text", "host", constant("internal/build/pattern.go", "maxHostExpressions", count), "", "the younger paths are not served; `TooMany`", "A1, A2"},
			{"Compiled size of these", "host", constant("internal/build/pattern.go", "maxHostExpressionBytes", bytes), "", "the same", "A1"},
			{"Length of an expression", "expression", constant(pcreGo, "MaxLength", bytes), "", "the path or value is rejected; `InvalidValue`", ""},
			{"Groups", "expression", constant(pcreGo, "MaxGroups", count), "", "the same", ""},
			{"Compiled size", "expression", constant(pcreGo, "maxCompiled", bytes), "", "the same", ""},
			{"Expressions among the aliases", "Ingress", constant("internal/feature/serveralias/serveralias.go", "maxExpressions", count), "", "the aliases of the Ingress have no effect; `InvalidValue`", "A6"},
			{"The same", "namespace", constant("internal/build/servername/alias.go", "maxNamespaceExpressions", count), "", "the younger ones have no effect; `TooMany`", "A6"},
			{"The same", "instance", constant("internal/build/servername/alias.go", "maxExpressions", count), "", "the same", "A6"},
			{"Expressions that are kept compiled", "worker", text(nginxConf, `lua_regex_cache_max_entries (\d+);`, count), "", "those used least recently are compiled again at each match", ""},
		}},
		{"Hosts and canaries", "", []Limit{
			{"Paths", "host", constant("internal/model/limits.go", "MaxHostRoutes", count), "", "the paths of the oldest Ingresses are served, the others answer 503; `TooMany`", "A2, A7"},
			{"Packed size", "host", constant("internal/model/limits.go", "MaxHostBytes", bytes), "", "the same", "A7"},
			{"Paths beyond these that are denied one by one", "host", constant("internal/model/limits.go", "MaxHostDenials", count), "", "a shorter path of the same namespace answers 503 for them", "A7"},
			{"Auth services on the host itself that are compared with its expressions", "host", constant("internal/model/limits.go", "MaxHostCalls", count), "", "further ones are asked at the addresses of the name", "A2"},
			{"Processor time of a turn in which hosts are built", "instance", constant("internal/controller/backlog.go", "turn", duration), "", "changes that have arrived are taken first, then other namespaces' hosts", "A10"},
			{"Processor time to build a host before it is dear", "host", constant("internal/controller/backlog.go", "DearBuild", duration), "", "the dear hosts that the namespace changes wait, see the next rows", "A2, A10"},
			{"Wait, by the time that the last one took", "dear host", constant("internal/controller/backlog.go", "DearRatio", count), "", "", "A10"},
			{"Longest wait", "dear host", constant("internal/controller/backlog.go", "LongestWait", duration), "", "", "A10"},
			{"Aliases", "Ingress", constant("internal/feature/serveralias/serveralias.go", "maxAliases", count), "", "the aliases of the Ingress have no effect; `InvalidValue`", ""},
			{"Canaries", "route", constant("internal/build/canary.go", "maxCanaries", count), "", "the younger canaries get no requests; `TooMany`", ""},
			{"Namespaces in `host-shared-with`", "Ingress", constant("internal/feature/tenancy.go", "maxSharedWith", count), "", "the annotation has no effect; `InvalidValue`", ""},
		}},
		{"Reloads and static settings", "Changes of the ConfigMap are not limited.", []Limit{
			{"Reloads that Ingresses cause at once", "instance", constant("internal/model/limits.go", "ReloadBurst", count), "reload-burst", "hosts wait, and are served with the nearest stricter settings; `Waits`, `headgate_reloads_held_back_total{by=\"rate\"}`", "A5, C3"},
			{"Time until one more reload", "instance", constant("internal/model/limits.go", "ReloadInterval", duration), "reload-interval", "the same", "A5"},
			{"Earlier generations with workers that still serve connections", "instance", constant("internal/model/limits.go", "OldGenerations", count), "reload-generations", "the same, with `by=\"generations\"`", "A5"},
			{"Time for which old workers serve their connections", "reload", text(processGo, `Key: "worker-shutdown-timeout", Default: ([^,]+),`, duration), "worker-shutdown-timeout", "the connections are closed", "A5"},
			{"Combinations of static settings (profiles)", "instance", constant("internal/plan/profiles.go", "maxProfiles", count), "", "namespaces have equal shares, oldest Ingresses first; other routes get the nearest stricter combination, or answer 503 if there is none; `TooMany`", "A11"},
			{"Different rules of `modsecurity-snippet`", "instance", constant("internal/feature/modsecurity/modsecurity.go", "maxRuleSets", count), "", "namespaces have equal shares, oldest Ingresses first; other paths answer 503; `TooMany`", ""},
			{"Profiles with them", "instance", constant("internal/feature/modsecurity/modsecurity.go", "maxProfiles", count), "", "namespaces have equal shares; other routes get the nearest stricter profile with the same rules, or answer 503; `TooMany`", ""},
			{"Tests of ModSecurity's rules at once", "namespace", constant("internal/nginx/tried.go", "tryBurst", count), "", "the paths answer 503 until the rules are tested; `Waits`", ""},
			{"Time until there is one more", "namespace", constant("internal/nginx/tried.go", "tryInterval", duration), "", "the same", ""},
			{"`modsecurity-snippet`", "Ingress", constant("internal/feature/modsecurity/rules.go", "maxBytes", bytes), "", "the paths answer 503; `InvalidValue`", ""},
			{"Directives in it", "Ingress", constant("internal/feature/modsecurity/rules.go", "maxDirectives", count), "", "the same", ""},
			{"Compiled regular expressions in it", "Ingress", constant("internal/feature/modsecurity/rules.go", "maxPatterns", bytes), "", "the same", ""},
			{"Time for the test of such rules", "rules", constant("internal/nginx/try.go", "tryTimeout", duration), "", "the paths answer 503, and NGINX tests them again; `Waits`", ""},
			{"Time of such tests after which other changes come first", "turn", constant("internal/controller/trials.go", "trialsInTurn", duration), "", "the same", ""},
		}},
		{"Memory of workers", "Decoded units take about four times their packed size. What was not used for longest is decoded again when it is needed.", []Limit{
			{"Time to decode a namespace's hosts and certificates, a second", "namespace and worker", text(budgetLua, `DECODING = \{\s+rate = ([0-9.]+)`, seconds), "", "requests for those that the worker does not hold are answered 503; metric `headgate_refusals_total`, one line a minute in the log", "A7"},
			{"The same at once", "namespace and worker", text(budgetLua, `DECODING = \{\s+rate = [0-9.]+, burst = ([0-9.]+)`, seconds), "", "the same", "A7"},
			{"Time that is not counted", "host", constant(unitsLua, "FREE", seconds), "", "it is counted", "A7"},
			{"The same", "certificate", constant(unitsLua, "FREE_CERTIFICATE", seconds), "", "it is counted", "A7"},
			{"Packed hosts that are held decoded", "worker", text(unitsLua, `host = \{[^}]*cache\.new\((\d+) \* MEGABYTE\)`, megabytes), "", "decoded again at the next request", "A7"},
			{"Packed names", "worker", text(unitsLua, `name = \{[^}]*cache\.new\((\d+) \* MEGABYTE\)`, megabytes), "", "the same", ""},
			{"Packed backends", "worker", text(unitsLua, `backend = \{[^}]*cache\.new\((\d+) \* MEGABYTE\)`, megabytes), "", "the same", ""},
			{"Packed certificates", "worker", text(unitsLua, `certificate = \{[^}]*cache\.new\((\d+) \* MEGABYTE\)`, megabytes), "", "decoded again at the next handshake", ""},
			{"Contents (users of Secrets)", "worker", text(unitsLua, `content = \{[^}]*cache\.new\((\d+) \* MEGABYTE\)`, megabytes), "", "the same", ""},
			{"Shared memory for units, at the start", "instance", text("internal/plan/dictionaries.go", `Units: ([^,}]+)`, bytes), "", "a larger one replaces it, with a reload", ""},
			{"Shared memory for certificates, at the start", "instance", text("internal/plan/dictionaries.go", `Certificates: ([^,}]+)\}`, bytes), "", "the same", ""},
			{"Its use at which it is replaced", "instance", constant("internal/plan/dictionaries.go", "fullPercent", percent), "", "", ""},
			{"Endpoints of a backend with `slow-start`", "backend", constant(slowStartLua, "MAX_ENDPOINTS", count), "", "endpoints that are added get their share at once", ""},
			{"Terminating endpoints of a backend with sessions, or as many as it has others", "backend", constant("internal/build/endpoint/endpoint.go", "maxTerminating", count), "", "the sessions of the others begin again", ""},
			{"Shared memory for the times of `slow-start`", "instance", text("internal/feature/balancing/balancing.go", `NewName\("hg_starts"\), Size: ([^}]+)\}`, bytes), "", "those of the backend that was not used for longest are dropped; new workers give its endpoints their share at once", ""},
			{"A frame of units", "push", constant("internal/dataplane/frame.go", "MaxFrame", bytes), "", "sent in parts, so that no push blocks a worker for long", ""},
		}},
		{"Requests", "", []Limit{
			{"Connections", "worker", text(nginxConf, `worker_connections (\d+);`, count), "", "idle connections are closed; if there are none, new ones", ""},
			{"Line of a request, and one header", "request", text(nginxConf, `large_client_header_buffers \d+ (\d+)k;`, kibibytes), "", "414, or 400", ""},
			{"Buffers for request headers of this size", "request", text(nginxConf, `large_client_header_buffers (\d+) `, count), "", "400", ""},
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
		}},
		{"Mirrors", "Copies of requests (`mirror-target`). Nothing of this delays or fails a request.", []Limit{
			{"Places for copies", "worker", constant(mirrorLua, "PLACES", count), "", "copies are dropped; `headgate_refusals_total{reason=\"mirror\"}`, one line a minute in the log", ""},
			{"Part of the free places that a namespace can have: one of", "namespace and worker", constant(mirrorLua, "SHARE", count), "", "the same", ""},
			{"Part of a body in memory that takes a further place", "copy", constant(mirrorLua, "BLOCK", bytes), "", "", ""},
			{"Time for the connection, and for the TLS handshake", "copy", constant(mirrorLua, "CONNECT_TIMEOUT", seconds), "", "the copy ends; one line a second in the log", ""},
			{"Time for all of it", "copy", constant(mirrorLua, "TIMEOUT", seconds), "", "the same", ""},
			{"Response that is read", "copy", constant(mirrorLua, "MAX_RESPONSE", bytes), "", "the connection is closed", ""},
		}},
		{"Limits of clients", "By `limit-rps`, `limit-rpm`, `limit-connections` and `global-rate-limit`. What finds no room is not limited.", []Limit{
			{"Counters of requests, of connections, and of requests over all replicas", "namespace", constant(ownersLua, "COUNTERS", count), "", "further clients are not limited; `headgate_unlimited_requests_total`, one line a minute in the log", ""},
			{"Memory for counters of requests", "instance", text(rateLimitGo, `NewName\("hg_buckets"\), Size: ([^}]+)\}`, bytes), "", "the same. A counter takes 192 bytes with the address of a client, and up to 384 with another key: ten, or five, namespaces with 32,768 each fill it", ""},
			{"Memory for counters of connections", "instance", text(rateLimitGo, `NewName\("hg_connections"\), Size: ([^}]+)\}`, bytes), "", "the same", ""},
			{"Memory for counters over all replicas", "instance", text(rateLimitGo, `NewName\("hg_windows"\), Size: ([^}]+)\}`, bytes), "", "the same. A client has two at least, one of the window before", ""},
			{"Time between two exchanges of these with the store", "instance", constant("internal/limitstore/limitstore.go", "Interval", duration), "", "replicas do not know what others let pass meanwhile", ""},
			{"The same while the store is away", "instance", constant("internal/limitstore/limitstore.go", "RetryInterval", duration), "", "each replica counts alone", ""},
			{"Time for the store to answer", "exchange", constant("internal/limitstore/limitstore.go", "Timeout", duration), "", "the same; `headgate_limit_store_up` is 0, one line in the log", ""},
			{"Counters that wait for the store", "instance", constant("internal/limitstore/limitstore.go", "MaxPending", count), "", "other replicas do not know them until the next request", ""},
			{"Key of a client that is not hashed", "request", constant("internal/feature/ratelimit/rate_limit.lua", "MAX_KEY", bytes), "", "", ""},
		}},
		{"Failing endpoints", "Of backends with at least two endpoints.", []Limit{
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
		}},
		{"Authentication", "", []Limit{
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
			{"Headers of `proxy-set-headers`", "process", constant("internal/feature/header.go", "maxHeaders", count), "", "503; `TooMany`", ""},
			{"Headers of `add-headers`", "process", constant("internal/feature/header.go", "maxHeaders", count), "", "none are added; `TooMany`", ""},
			{"Headers of `auth-proxy-set-headers`", "Ingress", constant("internal/feature/header.go", "maxHeaders", count), "", "503; `TooMany`", ""},
		}},
		{"Certificates", "", []Limit{
			{"`tls.crt`", "Secret", constant(certificate, "maxChainBytes", bytes), "", "the default certificate is served; `BadCertificate`", ""},
			{"Certificates in it", "Secret", constant(certificate, "maxCertificates", count), "", "the same", ""},
			{"`tls.key`", "Secret", constant(certificate, "maxKeyBytes", bytes), "", "the same", ""},
			{"RSA key, in bits", "Secret", constant("internal/keypolicy/keypolicy.go", "maxRSABits", count), "", "the same", ""},
			{"Issuers that are fetched for a chain", "certificate", constant("internal/source/pki/issuers.go", "maxIssuers", count), "", "the chain stays incomplete; `IncompleteChain`", ""},
			{"Issuer's certificate or OCSP response", "fetch", constant("internal/source/pki/client.go", "maxBytes", bytes), "", "the fetch fails", ""},
			{"Time of a fetch", "fetch", constant("internal/source/pki/client.go", "maxTime", duration), "", "the same", ""},
			{"Time between two fetches of a response, at least", "certificate", constant("internal/source/pki/ocsp.go", "minPause", duration), "", "", ""},
		}},
		{"DNS names", "Of Services of type ExternalName, auth services and mirrors.", []Limit{
			{"Addresses", "name", constant("internal/source/dns/lookup.go", "maxAddresses", count), "", "the others are not used", ""},
			{"CNAMEs", "lookup", constant("internal/source/dns/lookup.go", "maxAliases", count), "", "the lookup fails; `Unresolved`", ""},
			{"Time for which an answer is used, at least", "name", constant("internal/source/dns/history.go", "minTTL", duration), "", "", ""},
			{"The same, at most", "name", constant("internal/source/dns/history.go", "maxTTL", duration), "", "it is looked up again", ""},
			{"Time for which a change waits for new names", "change", constant("internal/controller/update.go", "namesInUpdate", duration), "", "their backends have no endpoints until they are resolved", "A2"},
			{"Time for which a change waits for new Secrets", "change", constant("internal/controller/update.go", "secretsInUpdate", duration), "", "they are another change", ""},
		}},
		{"Health checks", "Of endpoints, by `health-check`. Each replica makes its own.", []Limit{
			{"Checks at a time of endpoints whose last check succeeded", "instance", constant(checkGo, "knownAtOnce", count), "", "they wait; a namespace has at most a quarter", ""},
			{"The same of new endpoints, and of those whose last check failed", "instance", constant(checkGo, "failedAtOnce", count), "", "the same", ""},
			{"Time for which a check takes its place, at least", "check", constant(checkGo, "slotTime", duration), "", "a namespace with more endpoints than 320 a second has longer intervals", ""},
			{"Interval, at least", "endpoint", constant(healthGo, "minInterval", duration), "", "the default is used; `InvalidValue`", ""},
			{"Time of a check, at most", "check", constant(healthGo, "maxTimeout", duration), "", "the same", ""},
			{"Path, or name of a gRPC service", "backend", constant(healthGo, "maxTarget", bytes), "", "the same", ""},
			{"Header that is read of an answer", "check", constant(probeGo, "maxHeader", bytes), "", "the check fails", ""},
			{"Body that is read of an answer", "check", constant(probeGo, "maxBody", bytes), "", "the rest is not read", ""},
			{"Time between two changes of a backend because of checks, at least", "backend", constant(checkGo, "pace", duration), "", "they are one change", ""},
			{"Endpoints that a finding names", "backend", constant("internal/build/health.go", "maxNamed", count), "", "it has the number of the others", ""},
			{"Services that are counted by name in `headgate_unhealthy_endpoints`", "instance", constant("internal/metrics/health.go", "maxServices", count), "", "they are counted together", ""},
		}},
		{"TCP and UDP services", "", []Limit{
			{"Connections or UDP sessions", "port", constant("internal/stream/limits.go", "MaxConnections", count), "", "a further connection is closed; for a further session, one that is idle ends; `headgate_stream_refused_total`", ""},
			{"Files of the process that are left for all else than connections", "instance", constant("internal/stream/limits.go", "spareFiles", count), "", "the same", ""},
			{"Pipes for bytes that are spliced", "instance", constant("internal/stream/splice_linux.go", "MaxPipes", count), "", "bytes are copied through a buffer", ""},
			{"Sockets of UDP sessions that are kept for the next ones", "family of addresses", constant("internal/stream/spare_linux.go", "maxSpare", count), "", "they are closed", ""},
			{"Time that a connection or UDP session can be idle", "connection", text("internal/feature/stream/stream.go", `Key: "proxy-stream-timeout", Default: ([^,]+),`, duration), "proxy-stream-timeout", "it ends", ""},
			{"Time for the header of the PROXY protocol", "connection", constant("internal/stream/header.go", "HeaderTimeout", duration), "", "the connection is closed; status 400", ""},
			{"Time to connect to an endpoint", "try", constant("internal/stream/tcp.go", "ConnectTimeout", duration), "", "the connection is closed; status 502", ""},
			{"The same, if there is another one to try", "try", constant("internal/stream/tcp.go", "ConnectTimeoutNext", duration), "", "it is tried", ""},
			{"Time for which others come first after an endpoint failed", "endpoint and port", constant("internal/stream/table.go", "avoidTime", duration), "", "", ""},
			{"Time between two tries to open a port, at most", "port", constant("internal/stream/stream.go", "maxRetry", duration), "", "", ""},
		}},
		{"TLS passthrough", "", []Limit{
			{"Connections that are passed through", "host", constant("internal/stream/limits.go", "MaxConnections", count), "", "a further connection is closed; `headgate_stream_refused_total`", ""},
			{"Connections whose ClientHello has not come", "instance", constant("internal/stream/tls_waiting.go", "MaxWaiting", count), "", "the one that has waited for longest is closed; `headgate_stream_refused_total`", ""},
			{"Time between two lines of the log about missing headers of the PROXY protocol", "instance", constant("internal/stream/seldom.go", "logInterval", duration), "", "the next line says how many were left out", ""},
			{"Time for the ClientHello", "connection", constant("internal/stream/tls_connection.go", "HelloTimeout", duration), "", "the connection is closed; status 400", ""},
			{"Bytes of the ClientHello", "connection", constant("internal/clienthello/clienthello.go", "MaxBytes", bytes), "", "NGINX gets the connection", ""},
			{"Time that a connection waits for NGINX", "connection", constant("internal/stream/tls_connection.go", "nginxTimeout", duration), "", "the connection is closed; status 502", ""},
			{"Time for a client to end a connection that NGINX has ended", "connection", constant("internal/stream/tls_connection.go", "lingerTime", duration), "", "the connection is closed", ""},
		}},
		{"Logs, findings and Events", "", []Limit{
			{"Lines of Lua in the error log, a second", "host, place and worker", text(logLua, `a line a second for`, one), "", "left out; the next line says how many", "C1"},
			{"The same", "worker", constant(logLua, "LINES", count), "", "the same", "C1"},
			{"Lines of `enable-rewrite-log`, a second", "host and worker", constant(logLua, "NOTICES_OF_PLACE", count), "", "the same", ""},
			{"The same", "worker", constant(logLua, "NOTICES", count), "", "the same", ""},
			{"Lines about a namespace whose time is up, a minute", "namespace", text("lua/headgate/budget.lua", `line a minute about an owner`, one), "", "left out", "A1"},
			{"Log that waits to be written", "log", constant("internal/linequeue/linequeue.go", "MaxBytes", bytes), "", "lines are dropped and counted; no request and no change waits", "C1"},
			{"Findings of one code", "object", constant("internal/finding/finding.go", "maxAlike", count), "", "one finding has the number of the others", ""},
			{"Findings that are logged one by one", "change", constant("internal/tracker/tracker.go", "maxLogged", count), "", "one line has the number of the others", ""},
			{"Namespaces that are counted by name in `headgate_refusals_total`", "instance", constant("lua/headgate/counters.lua", "MAX_REFUSED", count), "", "they are counted together", ""},
			{"Events, a second", "instance", constant(eventGo, "perSecond", count), "", "they wait", ""},
			{"Events at once", "instance", constant(eventGo, "burst", count), "", "the same", ""},
			{"Events without a pause", "object", constant("internal/event/account.go", "maxBurst", count), "", "one each 5 minutes", ""},
			{"Events that wait", "namespace", constant("internal/event/queue.go", "maxPerNamespace", count), "", "dropped", ""},
			{"The same", "instance", constant("internal/event/queue.go", "maxWaiting", count), "", "dropped", ""},
		}},
		{"Metrics of requests", "", []Limit{
			{"Combinations of labels (`--metrics-series-per-namespace`)", "namespace", constant("internal/traffic/family.go", "DefaultBudget", count), "", "requests are counted together, with `ingress=\"_others\"`; finding `TooMany`", ""},
			{"Series that could not be reported", "worker", constant(trafficLua, "MAX_SERIES", count), "", "requests are counted together, by namespace", ""},
			{"Buckets of a histogram", "instance", constant("cmd/headgate/flags_metrics.go", "maxBuckets", count), "", "the flag is rejected", ""},
		}},
		{"Tracing", "No request waits for a span.", []Limit{
			{"Spans that wait", "worker, and instance", text(tracesGo, `Key: "otel-max-queuesize", Default: (\d+),`, count), "otel-max-queuesize", "further ones are dropped; `headgate_spans_dropped_total`", ""},
			{"Memory of those in a worker", "worker", constant(spansLua, "BYTES", bytes), "", "the same", ""},
			{"Memory of those in the controller", "instance", constant("internal/tracing/sender.go", "maxWaiting", bytes), "", "the same", ""},
			{"Spans that the controller exports at once, in bytes of their text", "instance", constant("internal/tracing/sender.go", "maxBatch", bytes), "", "they are another batch", ""},
			{"Shared memory for spans that the controller has not read", "instance", text(nginxConf, `lua_shared_dict hg_spans (\d+)m;`, megabytes), "", "they wait in workers", ""},
			{"Sampled requests that a worker reports at once", "report", constant(spansLua, "REQUESTS", count), "", "they are another report", ""},
			{"Reports that the controller gets at once", "instance", constant(spansLua, "REPORTS", count), "", "it fetches again", ""},
			{"A text in an attribute", "attribute", constant("internal/tracing/span.go", "maxText", bytes), "", "it is cut", ""},
			{"Name of a span", "span", constant("internal/tracing/span.go", "maxName", bytes), "", "the same", ""},
			{"`tracestate` of a client", "request", constant("lua/headgate/trace_context.lua", "MAX_STATE", bytes), "", "it is not passed on", ""},
		}},
		{"Admission webhook", "Anyone who reaches its port can ask.", []Limit{
			{"Size of a request", "request", constant(admissionGo, "maxBody", bytes), "", "413", ""},
			{"Size of an Ingress", "request", constant(admissionGo, "maxObject", bytes), "", "the Ingress is refused", ""},
			{"Size of all requests together", "instance", constant(admissionGo, "maxBodies", bytes), "", "503", ""},
			{"Connections", "instance", constant(admissionGo, "maxConnections", count), "", "they are closed", ""},
			{"Time to send a header, or for a handshake", "connection", constant(admissionGo, "headerTimeout", duration), "", "the connection is closed", ""},
			{"Time to send a request", "request", constant(admissionGo, "readTimeout", duration), "", "408, or the connection is closed", ""},
			{"Time between two requests", "connection", constant(admissionGo, "idleTimeout", duration), "", "the connection is closed", ""},
			{"Time that a review waits for others", "request", constant(admissionGo, "reviewTimeout", duration), "", "503", ""},
			{"Hosts, names and backends of an Ingress that are reviewed", "request", constant("internal/review/review.go", "maxUnits", count), "", "the rest is not reviewed; findings report it later", ""},
			{"Validity of a certificate (`--webhook-self-signed`)", "certificate", constant(selfSignedGo, "Validity", duration), "", "", ""},
			{"Time before its end at which it is renewed", "certificate", constant(selfSignedGo, "RenewBefore", duration), "", "", ""},
			{"Time for which API servers have a new CA before its certificate is served", "renewal", constant(selfSignedGo, "Delay", duration), "", "", ""},
			{"Time until a CA bundle that was overwritten is written again, and until a new certificate is served", "instance", constant(selfSignedGo, "Interval", duration), "", "", ""},
			{"Findings in an answer", "request", constant("internal/review/decision.go", "maxSentences", count), "", "their number", ""},
		}},
		{"Folders of manifests", "They belong to the administrator: these limits are for mistakes.", []Limit{
			{"A file", "file", constant("internal/source/file/load.go", "maxSize", bytes), "", "the last good state is served; `BadManifest`", ""},
			{"Folders in each other", "folder", constant("internal/source/file/tree.go", "maxFolders", count), "", "not read; `BadManifest`", ""},
			{"Nesting of a document", "document", constant("internal/source/file/manifest/yaml.go", "maxDepth", count), "", "not read; `BadManifest`", ""},
			{"Time without a change until a file that is written in place is read", "file", constant("internal/source/file/watch.go", "quiet", duration), "", "", "C4"},
		}},
	}
}
