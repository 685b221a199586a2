// Package upstreamvhost sets the Host header of requests to backends.
package upstreamvhost

import (
	"embed"

	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
)

const name = "upstream_vhost"

//go:embed *.lua
var lua embed.FS

var upstreamVhost = feature.Setting[template.Template]{
	Annotation: "upstream-vhost", Parse: parse, OnInvalid: feature.Deny, Risk: feature.Low,
	Doc: "The Host header of requests to the backend. It can contain variables, and $1 to $9 for the groups of the path. If it is empty, the client's Host header is used.",
}

// Feature is upstream-vhost.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Sets the Host header of requests to backends.",
		Settings: []feature.AnySetting{upstreamVhost},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if host := upstreamVhost.Get(v); len(host) > 0 {
				feature.Add(out.Route, name, policy{Host: host})
			}
		},
		Lua: lua,
	}
}

// policy is what upstreamvhost.lua reads of a route.
type policy struct {
	Host template.Template `json:"host"`
}

var parse = feature.TemplateOf(feature.Matching(`^[A-Za-z0-9._~/:^$\[\](){}*+?|&=\\-]+$`, 1000,
	`must be at most 1000 letters, digits and -._~/:^$[](){}*+?|&=\, and variables such as $service_name`), false)
