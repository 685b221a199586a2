package feature

import "slices"

// A Capability is something that one NGINX, or one installation, can do and another can't. The controller
// looks for each; where there is no NGINX, as for lint, all are assumed.
type Capability string

// The capabilities.
const (
	// HybridGroups are the groups for key exchange that combine a curve with ML-KEM.
	// They need OpenSSL 3.5 or later. NGINX rejects its whole configuration if its TLS
	// library lacks a group.
	HybridGroups Capability = "hybrid-groups"
	// HTTP3 is HTTP over QUIC. NGINX has it from 1.25 on, unless it is built without.
	HTTP3 Capability = "quic"
	// DebugLog is the level debug of the error log, which NGINX has with --with-debug.
	DebugLog Capability = "debug-log"
	// ModSecurity is the module of that name.
	ModSecurity Capability = "modsecurity-module"
	// CoreRules are the rules of OWASP for that module, where images for Kubernetes have
	// them, and DebianCoreRules those of Debian's package.
	CoreRules       Capability = "core-rules"
	DebianCoreRules Capability = "debian-core-rules"
	// Brotli is the module that compresses responses by brotli.
	Brotli Capability = "brotli-module"
	// GeoIP2 is the module that looks up addresses in databases.
	GeoIP2 Capability = "geoip2-module"
	// UnicodeMapping is the module's file of that name.
	UnicodeMapping Capability = "unicode-mapping"
	// SystemAuthorities is a file with the system's certificate authorities.
	SystemAuthorities Capability = "system-authorities"
	// LimitStore is a store in which replicas count together. An administrator names it by
	// a flag.
	LimitStore Capability = "limit-store"
	// TraceCollector gets spans. The environment of the controller names it.
	TraceCollector Capability = "trace-collector"
)

// Capabilities lists all of them.
func Capabilities() []Capability {
	return []Capability{HybridGroups, HTTP3, DebugLog, ModSecurity, Brotli, GeoIP2, CoreRules, DebianCoreRules, UnicodeMapping, SystemAuthorities, LimitStore, TraceCollector}
}

// Lacking are the capabilities that are not among those that an NGINX has.
func Lacking(has []string) []Capability {
	return slices.DeleteFunc(Capabilities(), func(c Capability) bool { return slices.Contains(has, string(c)) })
}
