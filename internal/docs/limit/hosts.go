package limit

func expressionTime() Group {
	return Group{"Time of regular expressions", "", []Limit{
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
	}}
}

func expressions() Group {
	return Group{"Regular expressions", "They are checked when an Ingress is read.", []Limit{
		{"Paths that are more than plain text", "host", constant("internal/build/pattern.go", "maxHostExpressions", count), "", "the younger paths are not served; `TooMany`", "A1, A2"},
		{"Compiled size of these", "host", constant("internal/build/pattern.go", "maxHostExpressionBytes", bytes), "", "the same", "A1"},
		{"Length of an expression", "expression", constant(pcreGo, "MaxLength", bytes), "", "the path or value is rejected; `InvalidValue`", ""},
		{"Groups", "expression", constant(pcreGo, "MaxGroups", count), "", "the same", ""},
		{"Compiled size", "expression", constant(pcreGo, "maxCompiled", bytes), "", "the same", ""},
		{"Expressions among the aliases", "Ingress", constant("internal/feature/serveralias/serveralias.go", "maxExpressions", count), "", "the aliases of the Ingress have no effect; `InvalidValue`", "A6"},
		{"The same", "namespace", constant("internal/build/servername/alias.go", "maxNamespaceExpressions", count), "", "the younger ones have no effect; `TooMany`", "A6"},
		{"The same", "instance", constant("internal/build/servername/alias.go", "maxExpressions", count), "", "the same", "A6"},
		{"Expressions that are kept compiled", "worker", text(nginxConf, `lua_regex_cache_max_entries (\d+);`, count), "", "those used least recently are compiled again at each match", ""},
	}}
}

func hosts() Group {
	return Group{"Hosts and canaries", "", []Limit{
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
	}}
}

func reloads() Group {
	return Group{"Reloads and static settings", "Changes of the ConfigMap are not limited.", []Limit{
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
	}}
}

func workerMemory() Group {
	return Group{"Memory of workers", "Decoded units take about four times their packed size. What was not used for longest is decoded again when it is needed.", []Limit{
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
	}}
}

func folders() Group {
	return Group{"Folders of manifests", "They belong to the administrator: these limits are for mistakes.", []Limit{
		{"A file", "file", constant("internal/source/file/load.go", "maxSize", bytes), "", "the last good state is served; `BadManifest`", ""},
		{"Folders in each other", "folder", constant("internal/source/file/tree.go", "maxFolders", count), "", "not read; `BadManifest`", ""},
		{"Nesting of a document", "document", constant("internal/source/file/manifest/yaml.go", "maxDepth", count), "", "not read; `BadManifest`", ""},
		{"Time without a change until a file that is written in place is read", "file", constant("internal/source/file/watch.go", "quiet", duration), "", "", "C4"},
	}}
}
