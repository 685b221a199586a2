package nginxconf

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/model/resource"
)

// Headers are those of requests by a protocol.
type headers struct {
	protocol
	client address
	// replaced are those that Lua sets.
	replaced []string
	// adds is set where Lua adds lines behind the last one.
	adds bool
	// own are those that features declare.
	own []resource.Header
	// pages is set where requests may be for pages of errors, of which backends learn nothing.
	pages bool
	// originalURI sends backends the path and query of the client.
	originalURI bool
}

func headersOf(p model.Process, r resource.Resources, protocols ...protocol) []headers {
	list := make([]headers, len(protocols))
	for i, one := range protocols {
		list[i] = headers{one, address{p.ClientAddress}, replacedHeaders(p), p.AddsHeaders && one.Protocol == model.HTTP, r.Headers, p.ShowsPages, p.OriginalURI}
	}
	return list
}

// A setHeader is a header with its value in nginx.conf.
type setHeader struct{ name, value string }

// setHeaders are what backends get besides the headers of the client, or instead of them.
func setHeaders(client address) []setHeader {
	scheme := client.Scheme()
	return []setHeader{
		{"Host", "$hg_backend_host"},
		{"X-Request-ID", "$req_id"},
		{"X-Real-IP", "$remote_addr"},
		{"X-Forwarded-For", client.ForwardedFor()},
		{"X-Forwarded-Host", "$hg_host"},
		{"X-Forwarded-Port", "$hg_port"},
		{"X-Forwarded-Proto", scheme},
		{"X-Forwarded-Scheme", scheme},
		{"X-Scheme", scheme},
		{"X-Original-Forwarded-For", "$" + client.OriginalFor().Variable()},
		{"X-Original-Forwarded-Host", "$" + client.OriginalHost().Variable()},
		{"Proxy", `""`},
	}
}

// lastHeader is the one behind which Lua adds lines: it has a value in all requests.
const lastHeader = "x-scheme"

// replacedHeaders are those that Lua sets.
func replacedHeaders(p model.Process) []string {
	names := p.ReplacedHeaders.Names()
	if p.AddsHeaders && !slices.Contains(names, lastHeader) {
		names = append(names, lastHeader)
	}
	return names
}

// Last is the directive of the last header, empty if none has to be that.
func (h headers) Last() string {
	if !h.adds {
		return ""
	}
	return h.Header("X-Scheme", "$"+names.HeaderVariable(lastHeader))
}

// Lines are the directives of all headers but the last one.
func (h headers) Lines() []string {
	var lines []string
	for _, set := range setHeaders(h.client) {
		name, value := strings.ToLower(set.name), set.value
		switch {
		case h.adds && name == lastHeader:
			continue
		case slices.Contains(h.replaced, name):
			value = "$" + names.HeaderVariable(name)
		case h.FastCGI() && name == "x-request-id":
			continue
		case h.FastCGI() && name == "x-forwarded-for":
			value = "$hg_asked_forwarded_for"
		}
		lines = append(lines, h.Header(set.name, value))
	}
	if h.pages {
		lines = append(lines, h.Header("X-Headgate-Page", `""`))
	}
	if h.originalURI {
		lines = append(lines, h.Header("X-Original-URI", "$request_uri"))
	}
	for _, own := range h.own {
		lines = append(lines, h.Header(own.Name.String(), own.Value.String()))
	}
	return lines
}

// replacedVariables are those of headers that Lua sets. Until it does, they have the values
// that nginx.conf would have set.
func replacedVariables(p model.Process) []variable {
	var list []variable
	for _, name := range replacedHeaders(p) {
		i := slices.IndexFunc(setHeaders(address{p.ClientAddress}), func(h setHeader) bool { return strings.ToLower(h.name) == name })
		if i >= 0 {
			list = append(list, variable{resource.NewName(names.HeaderVariable(name)), resource.Line, setHeaders(address{p.ClientAddress})[i].value})
		}
	}
	return list
}

// ownHeaders are the headers of requests that nginx.conf sets or believes, in lower case: no
// client may send them by names that only look the same.
func ownHeaders(p model.Process, r resource.Resources) []string {
	var list []string
	add := func(name string) { list = append(list, strings.ToLower(name)) }
	for _, set := range setHeaders(address{p.ClientAddress}) {
		add(set.name)
	}
	if !p.ClientAddress.For.IsZero() {
		add(p.ClientAddress.For.String())
	}
	for _, own := range r.Headers {
		add(own.Name.String())
	}
	for _, location := range r.Locations {
		for _, own := range location.Headers {
			add(own.Name.String())
		}
	}
	// Without a hyphen, a name has no other form.
	list = slices.DeleteFunc(list, func(name string) bool { return !strings.Contains(name, "-") })
	slices.Sort(list)
	return slices.Compact(list)
}
