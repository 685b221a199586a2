package globalheaders

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/header"
	"github.com/headgate/headgate/internal/syntax/template"
)

// ofRequests and ofResponses are the variables of values besides those of all templates.
// global_headers.lua has their functions.
var (
	ofRequests = []string{
		"hostname", "msec", "proxy_add_x_forwarded_for", "proxy_protocol_addr", "realip_remote_addr", "remote_port", "server_protocol",
		"ssl_cipher", "ssl_protocol", "ssl_server_name", "time_iso8601",
	}
	ofResponses = append(slices.Clone(ofRequests), "request_time", "upstream_addr", "upstream_response_time", "upstream_status")
)

// A list is the headers of a ConfigMap.
type list struct {
	setting feature.Setting[feature.ObjectName]
	name    feature.ObjectName
	data    map[string]string
	further []string
}

func (l list) names() []string { return slices.Sorted(maps.Keys(l.data)) }

func (l list) warn(out *feature.ProcessOut, key, problem, effect string) {
	out.Warn(l.setting, finding.InvalidValue, fmt.Sprintf("ConfigMap %s, %q: %s", l.name, finding.Shorten(key), problem), effect)
}

// value is empty beside an error.
func (l list) value(key string) (template.Template, error) {
	text, err := header.Value(l.data[key])
	if err != nil {
		return template.Template{}, err
	}
	t, err := template.ParseWith(text, l.further)
	if err != nil {
		return template.Template{}, err
	}
	for _, piece := range t {
		if piece.Variable == "group" {
			return template.Template{}, errors.New("must have no groups ($1) of a path")
		}
	}
	return append(template.Template{}, t...), nil
}

const badName = "the name must consist of up to 200 letters, digits, - and _"

// owned are headers of requests that only Headgate sets.
var owned = []string{
	"early-data", "proxy", "ssl-client-cert", "ssl-client-issuer-dn", "ssl-client-subject-dn", "ssl-client-verify", "x-headgate-chain", "x-headgate-checks",
}

// refusedRequestHeader says why requests can't have a header, empty if they can.
func refusedRequestHeader(name string) string {
	switch {
	case !header.IsName(name):
		return badName
	case header.Has(header.RequestFraming(), name):
		return "the header controls how requests are transferred"
	case header.Has(owned, name):
		return "Headgate sets this header"
	}
	return ""
}

func refusedResponseHeader(name string) string {
	switch {
	case !header.IsName(name):
		return badName
	case header.Has(header.ResponseFraming(), name):
		return "the header controls how responses are transferred"
	}
	return ""
}
