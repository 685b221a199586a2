package limit

// Files that have several limits.
const (
	nginxConf      = "internal/plan/nginx.conf.tmpl"
	budgetLua      = "lua/headgate/budget.lua"
	patternsLua    = "lua/headgate/patterns.lua"
	pathLua        = "lua/headgate/path_patterns.lua"
	unitsLua       = "lua/headgate/units.lua"
	logLua         = "lua/headgate/log.lua"
	healthLua      = "lua/headgate/health.lua"
	ownersLua      = "internal/feature/ratelimit/owners.lua"
	rateLimitGo    = "internal/feature/ratelimit/ratelimit.go"
	probeLua       = "lua/headgate/probe.lua"
	retriesLua     = "lua/headgate/retries.lua"
	trafficLua     = "lua/headgate/traffic_series.lua"
	spansLua       = "lua/headgate/span_report.lua"
	tracesGo       = "internal/feature/opentelemetry/opentelemetry.go"
	mirrorLua      = "internal/feature/mirror/mirror.lua"
	passwordLua    = "internal/feature/basicauth/password.lua"
	slowStartLua   = "internal/feature/balancing/slow_start.lua"
	pcreGo         = "internal/syntax/pcre/pattern.go"
	processGo      = "internal/feature/process/process.go"
	workerGo       = "internal/feature/worker/worker.go"
	clientHeaderGo = "internal/feature/clientheader/clientheader.go"
	certificate    = "internal/build/certificate/parse.go"
	eventGo        = "internal/observe/event/event.go"
	checkGo        = "internal/source/check/check.go"
	probeGo        = "internal/source/check/probe.go"
	healthGo       = "internal/feature/healthcheck/healthcheck.go"
	admissionGo    = "internal/admission/server.go"
	selfSignedGo   = "internal/admission/selfsigned/keeper.go"
)

// Groups are all limits.
func Groups() []Group {
	return []Group{
		expressionTime(),
		expressions(),
		hosts(),
		reloads(),
		workerMemory(),
		requests(),
		mirrors(),
		clients(),
		failingEndpoints(),
		authentication(),
		certificates(),
		dnsNames(),
		healthChecks(),
		streams(),
		passthrough(),
		logs(),
		metrics(),
		tracing(),
		admission(),
		folders(),
	}
}
