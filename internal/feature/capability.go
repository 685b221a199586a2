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
func Capabilities() []Capability {
	all := make([]Capability, capabilities)
	for i := range all {
		all[i] = Capability(i)
	}
	return all
}

// Lacking says what this NGINX can't do: readers over the configuration then
// tell so. It returns c, which nobody must be reading yet.
func (c *Config) Lacking(lacking ...Capability) *Config {
	for _, l := range lacking {
		c.lacks[l] = true
	}
	return c
}

// Has tells whether NGINX can do something. A feature that needs it and can't
// have it tells so with finding.MissingCapability: by Deny if it controls
// access, else by Refuse.
func (r *Reader) Has(c Capability) bool { return !r.config.lacks[c] }
