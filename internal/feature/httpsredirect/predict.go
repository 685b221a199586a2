package httpsredirect

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// predict is httpsredirect.lua's function rewrite in Go.
func predict(q feature.SimulatedRequest) feature.Prediction {
	p, _ := q.Policy.(policy)
	all, _ := q.Global.(everywhere)
	if !p.Always && !q.HasTLS || q.Scheme != "http" {
		return feature.Prediction{}
	}
	uri, port := q.URI, ""
	if !p.KeepSlash {
		uri = strings.TrimSuffix(uri, "/")
	}
	if p.Port {
		port = fmt.Sprintf(":%d", q.HTTPSPort)
	}
	why := "an Ingress of the host has a TLS section (ssl-redirect)"
	if p.Always {
		why = "force-ssl-redirect is set"
	}
	return feature.Prediction{Status: all.Code, Location: "https://" + q.HostName + port + uri, Why: why}
}
