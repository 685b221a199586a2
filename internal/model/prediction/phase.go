package prediction

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

// ByPhase predicts what a feature's policy on a route answers to a request, by phase.
// Without one the feature never answers in that phase. In AuthPhase, the Status is 401 or
// 403 if the auth check denies the request; 0 with a Why means that something else decides.
type ByPhase map[Phase]func(Request) Answer

// MayAnswer is for features that do not simulate their answers. The sentence has the status
// and, in parentheses, the setting: "429 if the client has too many requests per second
// (limit-rps)".
func MayAnswer(sentence string) func(Request) Answer {
	return func(Request) Answer { return Answer{Why: sentence} }
}
