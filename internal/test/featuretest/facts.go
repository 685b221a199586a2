package featuretest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// deniedRoute is the fact that an Ingress's paths answer 503.
const deniedRoute = "denied the route"

// routeOf is a route of the Ingress with what the feature writes. The host has an
// open route for what begins with /open.
func routeOf(f feature.Feature, in input) (*model.Route, feature.Report) {
	out := feature.RouteOut{
		Report: feature.NewReport(in.Values(), "the paths of this Ingress answer 503"),
		Route:  &model.Route{Origin: web, Kind: model.Prefix, Path: "/", Backend: "default/web/80"},
		Host:   feature.Host{Name: "web.example.com", Answers: func(path string) bool { return strings.HasPrefix(path, "/open") }},

		AppProtocol: in.appProtocol,
	}
	if f.Route != nil {
		f.Route(in.Values(), &out)
	}
	out.Route.Denied = in.Denied() || out.Denied
	return out.Route, out.Report
}

// ofRoute is what becomes of a route.
func ofRoute(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	route, report := routeOf(f, in)
	if f.Route != nil {
		facts = append(facts, profileFacts(f, route.Profile)...)
		facts = append(facts, fields("variant", route.Variant)...)
		facts = append(facts, fmt.Sprintf("relative %v", route.Relative))
	}
	if route.Unlogged {
		facts = append(facts, "not logged")
	}
	if route.SatisfyAny {
		facts = append(facts, "one auth check is enough")
	}
	if route.Fallback != "" {
		facts = append(facts, "fallback "+route.Fallback)
	}
	if route.Trace.On {
		facts = append(facts, "traced "+plain(route.Trace))
	}
	for _, p := range route.Policies {
		facts = append(facts, "policy "+p.Feature+" "+plain(p.Value))
	}
	for _, c := range slices.Concat(route.Contents, route.Files) {
		facts = append(facts, fmt.Sprintf("content %.8s… %q", c.Name, string(c.Bytes)))
	}
	if route.Denied {
		facts = append(facts, deniedRoute)
	}
	return facts, report.Problems
}

// ofIngress is what the Ingress names, and the way in which it takes part in
// hosts.
func ofIngress(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	for _, ref := range in.References() {
		facts = append(facts, fmt.Sprintf("refers to %s %s", ref.Kind, ref.ObjectName))
	}
	if f.Names != nil {
		var out feature.NamesOut
		if f.Names(in.Values(), &out); out.AliasesBy != nil {
			facts = append(facts, fmt.Sprintf("aliases %q", out.Aliases))
		}
		if out.WWWBy != nil {
			facts = append(facts, "claims the www name")
		}
	}
	if f.Canary != nil {
		report := feature.NewReport(in.Values(), "no request goes to the canary")
		if when, ok := f.Canary(in.Values(), &report); ok {
			facts = append(facts, "is a canary "+plain(when))
		}
		problems = report.Problems
	}
	if f.Patterns != nil && f.Patterns(in.Values(), "/") != nil {
		facts = append(facts, "patterns")
	}
	if f.Calls != nil {
		for _, call := range f.Calls(in.Values()) {
			facts = append(facts, fmt.Sprintf("calls %+v by backend %q", call, call.Backend()))
		}
	}
	return facts, problems
}

// ofHost is what becomes of a host that the Ingress decides over.
func ofHost(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	if f.Host == nil {
		return nil, nil
	}
	const denial = "all requests for host web.example.com are refused"
	merged := in.schema.Merge(feature.ScopeHost, in.config, []*feature.Parsed{in.Parsed}, denial)
	out := feature.HostOut{Report: feature.NewReport(merged.Values, denial)}
	f.Host(merged.Values, &out)
	if out.Policy != nil {
		facts = append(facts, "of the host "+plain(out.Policy))
	}
	if out.Server != nil {
		facts = append(facts, "before a route of the host "+plain(out.Server))
	}
	if out.TLS != nil {
		facts = append(facts, "in handshakes for the host "+plain(out.TLS))
	}
	if out.Passthrough != nil {
		facts = append(facts, "TLS passthrough of the host")
	}
	if merged.Denied || out.Denied {
		facts = append(facts, "denied the host")
	}
	return facts, append(merged.Problems, out.Problems...)
}

// ofBackend is what becomes of a backend that the Ingress decides over.
func ofBackend(f feature.Feature, in input) ([]string, []feature.Problem) {
	if f.Backend == nil {
		return nil, nil
	}
	const denial = "all requests for backend default/web/80 are refused"
	merged := in.schema.Merge(feature.ScopeBackend, in.config, []*feature.Parsed{in.Parsed}, denial)
	out := feature.BackendOut{Report: feature.NewReport(merged.Values, denial), Balancing: &model.Balancing{}}
	f.Backend(merged.Values, &out)
	facts := fields("balancing", *out.Balancing)
	if merged.Denied || out.Denied {
		facts = append(facts, "denied the backend")
	}
	return facts, append(merged.Problems, out.Problems...)
}

// ofProcess is what becomes of all requests, and of NGINX.
func ofProcess(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	if f.Process == nil {
		return nil, nil
	}
	values := in.attached.Values()
	out := feature.ProcessOut{Report: feature.NewReport(values, feature.KeyDenies), Process: &model.Process{}}
	if f.Process(values, &out); out.Policy != nil {
		facts = append(facts, "globals "+plain(out.Policy))
	}
	own := func(fact string) bool { return strings.HasPrefix(fact, "process TLS=") }
	facts = append(facts, slices.DeleteFunc(fields("process", *out.Process), own)...)
	if !reflect.DeepEqual(out.Process.TLS, model.TLS{}) {
		facts = append(facts, fields("tls", out.Process.TLS)...)
	}
	return facts, out.Problems
}

// plain is a value as the data plane gets it.
func plain(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "no plain data: " + err.Error()
	}
	return strings.TrimSpace(b.String())
}

// fields are those of a struct, without sets that are empty.
func fields(what string, value any) []string {
	v := reflect.ValueOf(value)
	facts := make([]string, 0, v.NumField())
	for i := range v.NumField() {
		field := v.Field(i).Interface()
		if policy, ok := field.(model.Policy); ok {
			field = fmt.Sprintf("{%s %v}", policy.Feature, policy.Value)
		}
		if set, ok := field.(interface{ Empty() bool }); !ok || !set.Empty() {
			facts = append(facts, fmt.Sprintf("%s %s=%v", what, v.Type().Field(i).Name, field))
		}
	}
	return facts
}
