package feature

// A Capability is something that not every NGINX can do. The controller finds
// out about each (see its lacking); where there is no NGINX to look at, as with
// lint, all are taken to be there.
type Capability int

// The capabilities.
const (
	// HybridGroups are the groups for key exchange that combine a curve with
	// ML-KEM. NGINX has them from its TLS library, OpenSSL 3.5 and later, and
	// refuses its whole configuration over a group that it does not know.
	HybridGroups Capability = iota

	capabilities // how many there are
)

func (c Capability) String() string { return [capabilities]string{"hybrid-groups"}[c] }

// Capabilities are all of them.
func Capabilities() []Capability { return upTo(capabilities) }
