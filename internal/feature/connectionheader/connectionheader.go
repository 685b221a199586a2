// Package connectionheader sets the Connection header of requests to backends.
package connectionheader

import (
	"embed"

	"github.com/headgate/headgate/internal/feature"
)

const name = "connection_header"

//go:embed *.lua
var lua embed.FS

var connection = feature.Setting[string]{
	Annotation: "connection-proxy-header", Parse: feature.Optional(feature.Word("close", "keep-alive")), Risk: feature.Low,
	Doc: "The Connection header of requests to backends, close or keep-alive. With either, connections are not upgraded to WebSockets. It has no effect on gRPC.",
}

// Feature is connection-proxy-header.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Sets the Connection header of requests to backends.",
		Settings: []feature.AnySetting{connection},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if value := connection.Get(v); value != "" {
				feature.Add(out.Route, name, policy{Connection: value})
			}
		},
		Lua: lua,
	}
}

// policy is what connection_header.lua reads of a route.
type policy struct {
	Connection string `json:"connection"`
}
