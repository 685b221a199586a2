package featuretest

// Idle are the annotations of which no good value does anything to a single Ingress,
// with the reasons.
func Idle() map[string]string {
	const noEffect = "it has no effect"
	const checks = "it has an effect once checks of an endpoint have failed: see internal/feature/healthcheck"
	return map[string]string{
		"auth-keepalive":                   noEffect,
		"auth-keepalive-requests":          noEffect,
		"auth-keepalive-share-vars":        noEffect,
		"auth-keepalive-timeout":           noEffect,
		"health-check":                     checks,
		"health-check-grpc-service":        checks,
		"health-check-healthy-threshold":   checks,
		"health-check-host":                checks,
		"health-check-interval":            checks,
		"health-check-path":                checks,
		"health-check-port":                checks,
		"health-check-timeout":             checks,
		"health-check-unhealthy-threshold": checks,
		"host-shared-with":                 "it has an effect for other namespaces only: see TestNamespacesKeepTheirHosts",
		"http2-push-preload":               noEffect,
		"ssl-passthrough":                  "it needs --enable-ssl-passthrough, and NGINX gets nothing of it: see TestProgram in test/dataplane",
	}
}
