package httpsredirect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
)

var withoutPort = regexp.MustCompile(`:[0-9]+$`)

// predict is httpsredirect.lua's function rewrite in Go.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	all, _ := q.Global.(everywhere)
	if !p.Always && !q.HasTLS || q.Scheme != "http" {
		return prediction.Answer{}
	}
	uri, host, port := q.URI, q.HostName, ""
	if q.Asked != "" {
		host = withoutPort.ReplaceAllString(q.Asked, "")
	}
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
	return prediction.Answer{Status: all.Code, Location: "https://" + host + port + uri, Why: why}
}

// part says why an annotation does not redirect.
func part(q prediction.Request, annotation, value string) string {
	_, redirects := q.Policy.(policy)
	switch {
	case annotation == sslRedirect.Annotation && value == "true" && !redirects:
		return "paths that begin like this one are not redirected (" + exemptLocations.Key + ")"
	case annotation == sslRedirect.Annotation && value == "true" && !q.HasTLS:
		return "no Ingress of the host has a TLS section"
	case (annotation == preserveTrailingSlash.Annotation || annotation == usePortInRedirects.Annotation) && predict(q).Location == "":
		return "the request is not redirected to https"
	}
	return ""
}
