// Package globalheaders sets headers of all requests to backends and of all responses, from
// ConfigMaps that the administrator names.
//
// The headers are settings of all requests: a change of the ConfigMaps builds no host. A
// route only notes that there are any.
package globalheaders

import (
	"embed"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/header"
	"github.com/headgate/headgate/internal/syntax/template"
)

const name = "global_headers"

//go:embed *.lua
var lua embed.FS

var (
	requestHeaders = feature.Setting[feature.ObjectName]{
		Key: "proxy-set-headers", Parse: feature.Optional(feature.ObjectIn), OnInvalid: feature.Deny,
		Scope: feature.ScopeProcess, Refers: feature.ConfigMap,
		Doc: "The ConfigMap, as namespace/name, with headers that requests to all backends have instead of the client's. " +
			"An empty value removes the header. If the ConfigMap does not exist, or has too many headers, the paths answer 503; a header " +
			"with an invalid value is removed. Values can have the variables " + template.ListVariables(ofRequests) + ". With --watch-namespace, " +
			"the ConfigMap must be in that namespace.",
	}
	responseHeaders = feature.Setting[feature.ObjectName]{
		Key: "add-headers", Parse: feature.Optional(feature.ObjectIn),
		Scope: feature.ScopeProcess, Refers: feature.ConfigMap,
		Doc: "The ConfigMap, as namespace/name, with headers that all responses have instead of the backend's. Without the ConfigMap, they have none of them. " +
			"An empty value removes the header. Values can have the variables of proxy-set-headers, and " +
			"$request_time, $upstream_addr, $upstream_response_time and $upstream_status.",
	}
)

// Feature is the headers of all requests and responses.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Sets headers of all requests to backends, and of all responses.",
		Settings: []feature.AnySetting{requestHeaders, responseHeaders},
		Route:    route,
		Process:  process,
		Predict:  prediction.ByPhase{prediction.RoutePhase: predict},
		Lua:      lua,
	}
}

// policy is what global_headers.lua reads for all requests.
type policy struct {
	// Requests and Responses are names with templates; an empty one removes the header.
	Requests  []pair `json:"requests,omitempty"`
	Responses []pair `json:"responses,omitempty"`
	// Variables are those with headers that nginx.conf sets otherwise.
	Variables []pair `json:"variables,omitempty"`
	// HSTS is the value of Strict-Transport-Security, which is sent only while the key hsts
	// is false.
	HSTS template.Template `json:"hsts,omitempty"`
	// Denied is set where it is not known what backends must get.
	Denied bool `json:"denied,omitempty"`
}

// A pair is the name of a header, and a template.Template.
type pair [2]any

// mark is the policy on routes: it has a request's table made.
type mark struct{}

func route(v feature.Values, out *feature.RouteOut) {
	if out.Route.Backend != "" && (requestHeaders.Get(v).Name != "" || responseHeaders.Get(v).Name != "") {
		feature.Add(out.Route, name, mark{})
	}
}

func process(v feature.Values, out *feature.ProcessOut) {
	var p policy
	if requestHeaders.Get(v).Name != "" {
		p.forRequests(v, out)
	}
	if responseHeaders.Get(v).Name != "" {
		p.forResponses(v, out)
		out.Process.SeesResponses = true
	}
	if p.Denied || p.Requests != nil || p.Responses != nil || p.Variables != nil || p.HSTS != nil {
		out.Policy = p
	}
}

// forRequests reads the headers for backends. They may be what backends trust: what a client
// must not send is removed even if its value is invalid, and if the names are not known,
// no request passes.
func (p *policy) forRequests(v feature.Values, out *feature.ProcessOut) {
	data, ok := feature.ConfigMapOf(v, requestHeaders)
	if !ok {
		// That was reported.
		p.Denied = true
		return
	}
	l := list{setting: requestHeaders, name: requestHeaders.Get(v), data: data, further: ofRequests}
	if err := header.Check(data); err != nil {
		p.Denied = true
		out.Deny(requestHeaders, finding.TooMany, fmt.Sprintf("ConfigMap %s: %v", l.name, err))
		return
	}
	var replaced []string
	for _, key := range l.names() {
		problem := refusedRequestHeader(key)
		if from := out.Process.ClientAddress.For; !from.IsZero() && strings.EqualFold(from.String(), key) && !header.Has(names.RequestHeaders(), key) {
			// NGINX may read it again, on the jump to a profile.
			problem = "the addresses of clients are taken from this header"
		}
		if problem != "" {
			l.warn(out, key, problem, "this header is not set")
			continue
		}
		value, err := l.value(key)
		if err != nil {
			l.warn(out, key, err.Error(), "requests to backends do not have this header")
		}
		if lower := strings.ToLower(key); header.Has(names.RequestHeaders(), key) {
			replaced = append(replaced, lower)
			p.Variables = append(p.Variables, pair{names.HeaderVariable(lower), value})
			continue
		}
		p.Requests = append(p.Requests, pair{key, value})
	}
	// They are names of RequestHeaders.
	out.Process.ReplacedHeaders, _ = names.NewHeaders(replaced...)
}

// forResponses reads the headers for clients. What is invalid is left out.
func (p *policy) forResponses(v feature.Values, out *feature.ProcessOut) {
	data, ok := feature.ConfigMapOf(v, responseHeaders)
	if !ok {
		return
	}
	l := list{setting: responseHeaders, name: responseHeaders.Get(v), data: data, further: ofResponses}
	if err := header.Check(data); err != nil {
		out.Reject(responseHeaders, finding.TooMany, fmt.Sprintf("ConfigMap %s: %v", l.name, err))
		return
	}
	for _, key := range l.names() {
		problem := refusedResponseHeader(key)
		value, err := l.value(key)
		if problem == "" && err != nil {
			problem = err.Error()
		}
		switch {
		case problem != "":
			l.warn(out, key, problem, "this header is not added")
		case strings.EqualFold(key, "Strict-Transport-Security"):
			p.HSTS = value
		default:
			p.Responses = append(p.Responses, pair{key, value})
		}
	}
}

// predict says that requests are refused, as global_headers.lua does.
func predict(q prediction.Request) prediction.Answer {
	if p, _ := q.Global.(policy); !p.Denied || q.Policy == nil {
		return prediction.Answer{}
	}
	return prediction.Answer{Status: 503, Why: "the ConfigMap of " + requestHeaders.Key + " can't be used: it is not known which headers backends must get"}
}
