package snippet

import (
	"errors"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/header"
)

// errFraming is about headers by which one request could be read as two, or one response.
var errFraming = errors.New("NGINX alone says where bodies end and how connections go on")

// reservedHeaders is what the names of headers begin with by which Headgate notices, for example,
// that an auth service calls itself.
const reservedHeaders = "x-headgate-"

var errOwn = errors.New("headers whose names begin with X-Headgate- are Headgate's own")

// checkFraming refuses such headers. A tenant's backends have connections that requests of
// others come by before, and so do its clients. Connection and Upgrade of requests are
// for the feature that sends them.
func checkFraming(directive, name string) error {
	name = strings.ToLower(name)
	switch {
	case strings.HasPrefix(directive, "proxy_set_") || strings.HasPrefix(directive, "grpc_set_") || strings.HasSuffix(directive, "_input_headers"):
		if slices.Contains([]string{"content-length", "transfer-encoding", "http2-settings"}, name) {
			return errFraming
		}
		if strings.HasPrefix(name, reservedHeaders) {
			return errOwn
		}
	case header.Has(header.ResponseFraming(), name):
		return errFraming
	}
	return nil
}
