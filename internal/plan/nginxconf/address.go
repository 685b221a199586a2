package nginxconf

import "github.com/headgate/headgate/internal/model"

// An address is where nginx.conf takes the addresses of clients from.
type address struct{ model.ClientAddress }

// HasScheme reports whether the client's scheme may be another one than the connection's.
func (a address) HasScheme() bool { return a.ProxyProtocol || a.Forwarded }

// Scheme is the variable with the client's scheme.
func (a address) Scheme() string {
	if a.HasScheme() {
		return "$hg_scheme"
	}
	return "$scheme"
}

// ForwardedFor is the variable with what backends get as X-Forwarded-For.
func (a address) ForwardedFor() string {
	if a.Full {
		return "$hg_forwarded_for"
	}
	return "$remote_addr"
}

// Two reports whether the server with the public ports is not that of calls of hosts to
// themselves, which name the client in another header.
func (a address) Two() bool { return a.ProxyProtocol || !a.For.IsZero() }

// Chained reports whether the addresses of the public ports come from more than one place,
// or from lines of a header of which NGINX would read the first one alone: Lua joins them.
func (a address) Chained() bool { return a.Joins() }

// OriginalFor is the client's header that backends get as X-Original-Forwarded-For.
func (a address) OriginalFor() model.HeaderName {
	return a.ClientAddress.OriginalFor.Or(model.ForwardedFor)
}

// OriginalHost is the client's header that backends get as X-Original-Forwarded-Host.
func (a address) OriginalHost() model.HeaderName {
	return a.ClientAddress.OriginalHost.Or(model.ForwardedHost)
}
