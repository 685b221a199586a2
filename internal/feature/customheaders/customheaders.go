// Package customheaders adds headers of a tenant's ConfigMap to responses, if the
// administrator allows their names.
package customheaders

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/header"
)

const name = "custom_headers"

//go:embed *.lua
var lua embed.FS

var (
	customHeaders = feature.Setting[feature.ObjectName]{
		Annotation: "custom-headers", Parse: feature.Optional(parse), OnInvalid: feature.DenyMissing, Risk: feature.Medium,
		// This gives no access to secrets of other namespaces: only values of keys that
		// the administrator allowed as headers are sent.
		Refers: feature.ConfigMap, AnyNamespace: true,
		Doc: "The ConfigMap whose data are added to responses as headers. It must be written as namespace/name. " +
			"Each header must be listed in the key global-allowed-response-headers. " +
			"If the namespace is missing, the ConfigMap does not exist or a header is invalid, the paths answer 503.",
	}
	allowedHeaders = feature.Setting[[]string]{
		Key: "global-allowed-response-headers", Parse: feature.List,
		Doc: "The names of the headers that custom-headers may add. Case matters.",
	}
)

// Feature is custom-headers.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Adds the headers listed in a ConfigMap to responses.",
		Settings: []feature.AnySetting{customHeaders, allowedHeaders},
		Route:    route,
		Lua:      lua,
	}
}

// parse accepts a name without a namespace: route rejects it, and denies.
func parse(text string) (feature.ObjectName, error) {
	object, err := feature.Object(text)
	if err != nil {
		return feature.ObjectName{}, errForm
	}
	return object, nil
}

var errForm = errors.New("must be NAMESPACE/NAME of a ConfigMap")

// policy is what customheaders.lua reads of a route.
type policy struct {
	Headers [][2]string `json:"headers,omitempty"`
	// HSTS is the value of Strict-Transport-Security, which is sent only while
	// the administrator's own is off.
	HSTS string `json:"hsts,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	if object := customHeaders.Get(v); object.Name != "" && object.Namespace == "" {
		out.Reject(customHeaders, finding.InvalidValue, fmt.Sprintf("invalid value %q: %v", object.Name, errForm))
		return
	}
	data, ok := feature.ConfigMapOf(v, customHeaders)
	if !ok || len(data) == 0 {
		return
	}
	if key, code, message := check(data, allowedHeaders.Get(v)); message != "" {
		object := customHeaders.Get(v)
		if object.Namespace != v.Origin().Namespace {
			out.Reject(customHeaders, finding.NotAllowed, feature.Foreign(feature.ConfigMap, object))
			return
		}
		where := fmt.Sprintf("ConfigMap %s", object)
		if key != "" {
			where += fmt.Sprintf(", %q", key)
		}
		out.Reject(customHeaders, code, where+": "+message)
		return
	}
	var p policy
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if strings.EqualFold(key, "Strict-Transport-Security") {
			p.HSTS = data[key]
		} else {
			p.Headers = append(p.Headers, [2]string{key, data[key]})
		}
	}
	feature.Add(out.Route, name, p)
	out.Route.Variant.HeaderFilter = true
}

var (
	headerName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	headerValue = regexp.MustCompile(`^[ -~]+$`)
)

// check returns the first problem of a ConfigMap, in the order of its keys, and the
// key; empty for a problem of the whole ConfigMap. The message is empty if there is none.
func check(data map[string]string, allowed []string) (key string, code finding.Code, message string) {
	for _, key = range slices.Sorted(maps.Keys(data)) {
		switch {
		case !headerName.MatchString(key):
			return key, finding.InvalidValue, "the name of a header must consist of letters, digits, - and _"
		case header.Has(header.ResponseFraming(), key):
			// NGINX sets it, even if the administrator allows it.
			return key, finding.NotAllowed, "must not be a header of the connection or of the response's length: " + strings.Join(header.ResponseFraming(), ", ")
		case !slices.Contains(allowed, key):
			return key, finding.NotAllowed, "the header must be listed in the key global-allowed-response-headers"
		case !headerValue.MatchString(data[key]):
			return key, finding.InvalidValue, "the value of a header must be one line of printable ASCII characters, and not empty"
		}
	}
	if err := header.Check(data); err != nil {
		return "", finding.InvalidValue, err.Error()
	}
	return "", "", ""
}
