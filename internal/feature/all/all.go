// Package all lists the features, in the order in which they act on a route.
package all

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/accesslog"
	"github.com/headgate/headgate/internal/feature/addresslist"
	"github.com/headgate/headgate/internal/feature/adminsnippet"
	"github.com/headgate/headgate/internal/feature/affinity"
	"github.com/headgate/headgate/internal/feature/answerrewrite"
	"github.com/headgate/headgate/internal/feature/backendprotocol"
	"github.com/headgate/headgate/internal/feature/balancing"
	"github.com/headgate/headgate/internal/feature/basicauth"
	"github.com/headgate/headgate/internal/feature/block"
	"github.com/headgate/headgate/internal/feature/canary"
	"github.com/headgate/headgate/internal/feature/clientaddress"
	"github.com/headgate/headgate/internal/feature/clientcert"
	"github.com/headgate/headgate/internal/feature/clientheader"
	"github.com/headgate/headgate/internal/feature/compression"
	"github.com/headgate/headgate/internal/feature/connectionheader"
	"github.com/headgate/headgate/internal/feature/cors"
	"github.com/headgate/headgate/internal/feature/customheaders"
	"github.com/headgate/headgate/internal/feature/defaultbackend"
	"github.com/headgate/headgate/internal/feature/ejection"
	"github.com/headgate/headgate/internal/feature/errorlog"
	"github.com/headgate/headgate/internal/feature/externalauth"
	"github.com/headgate/headgate/internal/feature/geoip"
	"github.com/headgate/headgate/internal/feature/globalheaders"
	"github.com/headgate/headgate/internal/feature/handshake"
	"github.com/headgate/headgate/internal/feature/hashsize"
	"github.com/headgate/headgate/internal/feature/healthcheck"
	"github.com/headgate/headgate/internal/feature/http2"
	"github.com/headgate/headgate/internal/feature/http3"
	"github.com/headgate/headgate/internal/feature/httpsredirect"
	"github.com/headgate/headgate/internal/feature/ineffective"
	"github.com/headgate/headgate/internal/feature/listen"
	"github.com/headgate/headgate/internal/feature/mirror"
	"github.com/headgate/headgate/internal/feature/modsecurity"
	"github.com/headgate/headgate/internal/feature/nginxstatus"
	"github.com/headgate/headgate/internal/feature/opentelemetry"
	"github.com/headgate/headgate/internal/feature/process"
	"github.com/headgate/headgate/internal/feature/proxying"
	"github.com/headgate/headgate/internal/feature/ratelimit"
	"github.com/headgate/headgate/internal/feature/redirect"
	"github.com/headgate/headgate/internal/feature/requestheaders"
	"github.com/headgate/headgate/internal/feature/rewrite"
	"github.com/headgate/headgate/internal/feature/satisfy"
	"github.com/headgate/headgate/internal/feature/serveralias"
	"github.com/headgate/headgate/internal/feature/serviceupstream"
	"github.com/headgate/headgate/internal/feature/snippet"
	"github.com/headgate/headgate/internal/feature/sslpassthrough"
	"github.com/headgate/headgate/internal/feature/stapling"
	"github.com/headgate/headgate/internal/feature/stream"
	"github.com/headgate/headgate/internal/feature/upstreamvhost"
	"github.com/headgate/headgate/internal/feature/worker"
)

// Features are all features.
func Features() []feature.Feature {
	return []feature.Feature{
		process.Feature(),
		compression.Feature(),
		listen.Feature(),
		worker.Feature(),
		http2.Feature(),
		hashsize.Feature(),
		clientheader.Feature(),
		nginxstatus.Feature(),
		ineffective.Feature(),
		// Before those whose values can have its variables.
		geoip.Feature(),
		errorlog.Feature(),
		accesslog.Feature(),
		clientaddress.Feature(),
		requestheaders.Feature(),
		block.Feature(),
		stream.Feature(),
		stapling.Feature(),
		handshake.Feature(),
		// It needs to know the TLS versions, and where addresses come from.
		http3.Feature(),
		// Before all that answers requests, and all whose headers have precedence.
		globalheaders.Feature(),
		// Before all that answers requests.
		clientcert.Feature(),
		sslpassthrough.Feature(),
		serveralias.Feature(),
		// Before all that add cookies of Headgate's own to answers.
		answerrewrite.Feature(),
		cors.Feature(),
		// Before all that redirects and rewrites.
		snippet.Feature(),
		redirect.Feature(),
		rewrite.Feature(),
		upstreamvhost.Feature(),
		connectionheader.Feature(),
		canary.Feature(),
		serviceupstream.Feature(),
		balancing.Feature(),
		ejection.Feature(),
		// It has precedence.
		affinity.Feature(),
		healthcheck.Feature(),
		// Before all auth checks.
		ratelimit.Feature(),
		satisfy.Feature(),
		addresslist.Feature(),
		// Behind the lists of addresses, which decide first.
		snippet.Access(),
		basicauth.Feature(),
		httpsredirect.Feature(),
		externalauth.Feature(),
		// Behind all that refuses clients.
		snippet.Bypass(),
		// Before proxying, which asks for the protocol, and behind rewrite: FastCGI backends
		// get the path in parameters.
		backendprotocol.Feature(),
		// Behind all that take back in the phase error_page what they gave a request.
		defaultbackend.Feature(),
		proxying.Feature(),
		modsecurity.Feature(),
		mirror.Feature(),
		snippet.Settings(),
		customheaders.Feature(),
		// Behind all that set headers.
		snippet.Effects(),
		opentelemetry.Feature(),
		adminsnippet.Feature(),
	}
}
