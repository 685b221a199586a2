// Package sslpassthrough passes the TLS connections of a host through to its backend.
package sslpassthrough

import "github.com/headgate/headgate/internal/feature"

var sslPassthrough = feature.Setting[bool]{
	Annotation: "ssl-passthrough", Parse: feature.Bool, OnInvalid: feature.Deny, Scope: feature.ScopeHost, Risk: feature.Low,
	Doc: "Passes the TLS connections for the host through to the backend of its path `/`, as they are: the backend has the certificate, " +
		"and nothing else that is set for the host applies to them. Needs `--enable-ssl-passthrough`. See [tls-passthrough.md](tls-passthrough.md).",
}

// Feature is ssl-passthrough.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "ssl_passthrough",
		Doc:      "Passes the TLS connections of a host through to its backend.",
		Settings: []feature.AnySetting{sslPassthrough},
		Host: func(v feature.Values, out *feature.HostOut) {
			if sslPassthrough.Get(v) {
				out.Passthrough = sslPassthrough
			}
		},
	}
}
