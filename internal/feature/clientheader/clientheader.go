// Package clientheader has the settings of how NGINX reads the headers of requests: how long
// they may be, and which names they may have.
package clientheader

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

// Bounds of values. A client may have all large buffers at once, for each connection.
const (
	minBuffer, maxBuffer = 512, 1 << 20
	minLarge, maxLarge   = 1 << 10, 1 << 20
	maxBuffers           = 64
)

var (
	first = feature.Setting[int64]{
		Key: "client-header-buffer-size", Default: 1 << 10, Parse: quantity.Size(minBuffer, maxBuffer), Scope: feature.ScopeProcess,
		Doc: "The size of the buffer for the header of a request. What does not fit gets large-client-header-buffers.",
	}
	large = feature.Setting[buffers]{
		Key: "large-client-header-buffers", Default: buffers{"4 8k", 4, 8 << 10}, Parse: parseBuffers, Scope: feature.ScopeProcess,
		Doc: "Number and size of the buffers for long headers of a request. A longer request line gets 414, a longer header, or more of them, 400. For HTTP/2 and HTTP/3 too.",
	}
	underscores = feature.Setting[bool]{
		Key: "enable-underscores-in-headers", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Passes on headers with underscores in their names. Those that only differ by underscores from headers that Headgate sets, such as X_Forwarded_For, are removed in any case.",
	}
	ignoreInvalid = feature.Setting[bool]{
		Key: "ignore-invalid-headers", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Removes headers with other characters in their names than letters, digits and hyphens. With false, all are passed on, those with underscores as with enable-underscores-in-headers.",
	}
)

// buffers are so many of a size in bytes, as they were written.
type buffers struct {
	text  string
	count int
	size  int64
}

func (b buffers) String() string { return b.text }

func parseBuffers(text string) (buffers, error) {
	count, size, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := feature.Int(1, maxBuffers)(count)
	bytes, bad := quantity.Size(minLarge, maxLarge)(size)
	if err != nil || bad != nil {
		return buffers{}, fmt.Errorf("must be a number from 1 to %d, a space and a size from 1k to 1m, such as 4 8k", maxBuffers)
	}
	return buffers{text, n, bytes}, nil
}

// Feature is how the headers of requests are read.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "client_header",
		Doc:      "How the headers of requests are read.",
		Settings: []feature.AnySetting{first, large, underscores, ignoreInvalid},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.ClientHeader = model.ClientHeader{
				Buffer: first.Get(v), LargeSize: large.Get(v).size, LargeBuffers: large.Get(v).count,
				Underscores: underscores.Get(v), Invalid: !ignoreInvalid.Get(v),
			}
		},
	}
}
