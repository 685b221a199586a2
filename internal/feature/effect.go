package feature

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
	// Expressions makes the paths of a host regular expressions.
	Expressions Effect = "expressions"
	// TrustedPeers are those whose headers say who asks.
	TrustedPeers Effect = "trusted peers"
)

// CauseOf is the setting that has an effect, or empty.
func CauseOf(features []Feature, of Effect) string {
	for _, f := range features {
		if name := f.Causes[of]; name != "" {
			return name
		}
	}
	return ""
}
