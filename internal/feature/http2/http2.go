// Package http2 has the settings of HTTP/2 between clients and NGINX.
package http2

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

const (
	maxStreams  = 1 << 16
	maxRequests = 1 << 30
	maxSize     = 1 << 30
)

var (
	use = feature.Setting[bool]{
		Key: "use-http2", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Enables HTTP/2 over TLS. With NGINX 1.25.1 or later also without TLS, for clients that begin with it, beside HTTP/1.1 on the same port.",
	}
	streams = feature.Setting[int]{
		Key: "http2-max-concurrent-streams", Default: 128, Parse: feature.Int(1, maxStreams), Scope: feature.ScopeProcess,
		Doc: "Maximum number of requests at the same time over one connection.",
	}
	fieldSize  = sizeOfHeader("http2-max-field-size")
	headerSize = sizeOfHeader("http2-max-header-size")
	requests   = feature.Setting[int]{
		Key: "http2-max-requests", Parse: feature.Int(0, maxRequests), Scope: feature.ScopeProcess,
		Doc: "Has no effect, as in ingress-nginx: " + insteadOfRequests + ".",
	}
	pushPreload = feature.Setting[bool]{
		Annotation: "http2-push-preload", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Has no effect, as in ingress-nginx: " + withoutPush + ".",
	}
)

const (
	insteadOfSize     = "`large-client-header-buffers` bounds the headers of all versions of HTTP"
	insteadOfRequests = "`keep-alive-requests` bounds the requests over a connection of all versions of HTTP"
	withoutPush       = "NGINX has no server push any more, and browsers neither"
)

// sizeOfHeader declares a size that NGINX has not used since 1.19.7.
func sizeOfHeader(key string) feature.Setting[int64] {
	return feature.Setting[int64]{
		Key: key, Parse: feature.Optional(quantity.Size(0, maxSize)), Scope: feature.ScopeProcess,
		Doc: "Has no effect, as in ingress-nginx: " + insteadOfSize + ".",
	}
}

// Feature is HTTP/2.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "http2",
		Doc:      "HTTP/2 between clients and NGINX.",
		Settings: []feature.AnySetting{use, streams, fieldSize, headerSize, requests, pushPreload},
		Process:  apply,
		Route: func(v feature.Values, out *feature.RouteOut) {
			if pushPreload.Get(v) {
				out.Warn(pushPreload, finding.NoEffect, withoutPush, "nothing is pushed")
			}
		},
	}
}

func apply(v feature.Values, out *feature.ProcessOut) {
	out.Process.HTTP2 = use.Get(v)
	if n := streams.Get(v); n != streams.Default {
		out.Process.HTTP2Streams = n
	}
	for _, size := range []feature.Setting[int64]{fieldSize, headerSize} {
		if size.Get(v) != 0 {
			out.Warn(size, finding.NoEffect, insteadOfSize, "it has no effect")
		}
	}
	if requests.Get(v) != 0 {
		out.Warn(requests, finding.NoEffect, insteadOfRequests, "it has no effect")
	}
}
