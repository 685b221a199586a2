package feature

// A Phase is a step of a request in which features may answer it instead of a
// backend, in this order.
type Phase int

// The phases. Each is the function of the feature's Lua of that name.
const (
	// AdmitPhase comes before the request is routed: the function admit. There is no policy
	// of a route, only Global.
	AdmitPhase Phase = iota + 1
	// RoutePhase comes before a backend is selected: the function rewrite.
	RoutePhase
	// LimitPhase comes once there is a backend: the function preaccess.
	LimitPhase
	// AuthPhase authenticates the client: the function authenticate.
	AuthPhase
	// GuardPhase comes after it: the function before_exec.
	GuardPhase
	// DeniedPhase is where a route is denied: the function error_page. The answer is 503 if
	// no feature has another one.
	DeniedPhase
)

// An Effect is what the core does because of a setting. Feature.Causes names the
// setting, for explanations.
type Effect string

// The effects.
const (
	// WWWRedirect redirects a name with or without "www." to the host.
	WWWRedirect Effect = "www redirect"
	// RejectUnknown ends TLS handshakes for names that no host has.
	RejectUnknown Effect = "reject unknown names"
	// FallbackBackend answers where a route's backend has no endpoint.
	FallbackBackend Effect = "fallback backend"
	// ErrorPage has another backend respond instead of errors.
	ErrorPage Effect = "error page"
	// AnyAuth requires one of several auth checks.
	AnyAuth Effect = "any authentication"
	// TrustedPeers are those whose headers say who asks.
	TrustedPeers Effect = "trusted peers"
)

// Predictions predict what a feature's policy on a route answers to a request, by phase.
// Without one the feature never answers in that phase. In AuthPhase, the Status is 401 or
// 403 if the auth check denies the request; 0 with a Why means that something else decides.
type Predictions map[Phase]func(SimulatedRequest) Prediction

// MayAnswer is for features that do not simulate their answers. The sentence has the status
// and, in parentheses, the setting: "429 if the client has too many requests per second
// (limit-rps)".
func MayAnswer(sentence string) func(SimulatedRequest) Prediction {
	return func(SimulatedRequest) Prediction { return Prediction{Why: sentence} }
}
