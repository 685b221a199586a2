package feature

// A Phase is a step of a request in which features may answer it instead of a
// backend, in this order.
type Phase int

// The phases. Each is the function of the feature's Lua of that name.
const (
	// RoutePhase comes before a backend is selected: the function rewrite.
	RoutePhase Phase = iota + 1
	// AuthPhase authenticates the client: the function authenticate.
	AuthPhase
	// GuardPhase comes after it: the function before_exec.
	GuardPhase
)

// MayAnswer is what a feature's policy on a route may answer to a request. It is
// for features that do not simulate their answers: explain prints the sentence
// at the place of the phase.
type MayAnswer struct {
	Phase Phase
	// Text is a sentence with the status and, in parentheses, the setting: "429
	// if the client has too many requests per second (limit-rps)".
	Text string
}

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
	// AnyAuth requires one of several auth checks.
	AnyAuth Effect = "any authentication"
)

// Effects are all effects.
func Effects() []Effect {
	return []Effect{WWWRedirect, RejectUnknown, FallbackBackend, AnyAuth}
}

// simulate is the function that predicts the feature's answer in a phase, nil if there
// is none.
func (f Feature) simulate(phase Phase) func(SimulatedRequest) Prediction {
	switch phase {
	case RoutePhase:
		return f.Predict
	case AuthPhase:
		return f.PredictAuth
	case GuardPhase:
		return f.PredictGuard
	}
	return nil
}

// Answer predicts what the feature answers to a request in a phase, or says on what
// that depends. It reports false where the feature never answers in the phase.
func (f Feature) Answer(phase Phase, q SimulatedRequest) (Prediction, bool) {
	if simulate := f.simulate(phase); simulate != nil {
		return simulate(q), true
	}
	return Prediction{Why: f.MayAnswer.Text}, f.MayAnswer.Phase == phase
}
