// Package requestheaders has the settings of headers by which backends know a request again.
package requestheaders

import (
	"github.com/headgate/headgate/internal/feature"
)

var (
	generateID = feature.Setting[bool]{
		Key: "generate-request-id", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Makes an ID of 32 hexadecimal digits for requests without the header X-Request-ID. If it is false, `$req_id` is empty for these, and the backend does not get the header.",
	}
	originalURI = feature.Setting[bool]{
		Key: "proxy-add-original-uri-header", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Sends the path and the query to the backend as the client sent them, in the header X-Original-URI, in place of the client's own. If it is false, the client's header is passed on.",
	}
)

// Feature is the settings of these headers.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "known_requests",
		Doc:      "Headers of requests to backends: the ID and the original URI.",
		Settings: []feature.AnySetting{generateID, originalURI},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.RequestIDs, out.Process.OriginalURI = generateID.Get(v), originalURI.Get(v)
		},
	}
}
