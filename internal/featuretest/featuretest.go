// Package featuretest holds features to golden files.
//
// A file is a comment, a section "in" and a section "out", and between them the
// data of objects that settings refer to: "secret NAMESPACE/NAME KEY" and
// "configmap NAMESPACE/NAME KEY". The Ingress is default/web. Each line of "in"
// is one case: settings between bars, each "annotation NAME: VALUE" or "key
// NAME: VALUE", or "lacks CAPABILITY", which NGINX then does not have. An empty
// line is a case without any. Values in quotes are Go strings. "out" repeats each
// case and says what the feature makes of it, as far as it differs from what it
// makes of nothing; for nothing it says what the feature wrote.
package featuretest

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

const prefix = "nginx.ingress.kubernetes.io"

var update = flag.Bool("update", false, "write the golden files again")

// Golden runs the cases of all files in testdata, and expects each setting of
// the feature in one of them.
func Golden(t *testing.T, f feature.Feature) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			all.WriteString(compare(t, file, f))
		})
	}
	for _, s := range f.Settings {
		d := s.Spec()
		if d.Annotation != "" && !strings.Contains(all.String(), "annotation "+d.Annotation+":") {
			t.Errorf("no case has the annotation %s", d.Annotation)
		}
		if d.Key != "" && !strings.Contains(all.String(), "key "+d.Key+":") {
			t.Errorf("no case has the key %s", d.Key)
		}
	}
}

func compare(t *testing.T, file string, f feature.Feature) string {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) == 0 || archive.Files[0].Name != "in" {
		t.Fatal("the first section must be in")
	}
	in := string(archive.Files[0].Data)
	last := len(archive.Files) - 1
	if archive.Files[last].Name != "out" {
		archive.Files = append(archive.Files, txtar.File{Name: "out"})
		last++
	}
	got := outcomes(t, f, in, objectsOf(dataOf(t, archive.Files[1:last])))
	if *update {
		archive.Files[last].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return in
	}
	if string(archive.Files[last].Data) != got {
		t.Errorf("got:\n%s\n(go test -update writes it)", got)
	}
	return in
}

// dataOf reads the sections of objects: their data by "secret NAMESPACE/NAME"
// or "configmap NAMESPACE/NAME".
func dataOf(t testing.TB, sections []txtar.File) map[string]map[string]string {
	t.Helper()
	data := map[string]map[string]string{}
	for _, s := range sections {
		part := strings.Fields(s.Name)
		if len(part) != 3 || part[0] != "secret" && part[0] != "configmap" {
			t.Fatalf("the section %q is not an object", s.Name)
		}
		object := part[0] + " " + part[1]
		if data[object] == nil {
			data[object] = map[string]string{}
		}
		data[object][part[2]] = strings.TrimSuffix(string(s.Data), "\n")
	}
	return data
}

// objectsOf shows objects to settings that refer to them.
func objectsOf(data map[string]map[string]string) feature.Objects {
	derived := map[string]any{}
	return feature.Objects{
		Derive: func(secret feature.ObjectName, key string, make func() any) any {
			key = secret.String() + " " + key
			if _, ok := derived[key]; !ok {
				derived[key] = make()
			}
			return derived[key]
		},
		Secret: func(name feature.ObjectName) (map[string][]byte, bool) {
			object, ok := data["secret "+name.String()]
			bytes := map[string][]byte{}
			for key, value := range object {
				bytes[key] = []byte(value)
			}
			return bytes, ok
		},
		ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
			object, ok := data["configmap "+name.String()]
			return object, ok
		},
	}
}

func outcomes(t *testing.T, f feature.Feature, in string, objects feature.Objects) string {
	t.Helper()
	nothing, untouched := run(f, settings{}, objects), untouchedFacts(f)
	var out strings.Builder
	for line := range strings.Lines(in) {
		line = strings.TrimSuffix(line, "\n")
		fmt.Fprintln(&out, strings.TrimSpace("> "+line))
		if line == "" {
			for _, fact := range nothing {
				if !untouched[fact] {
					fmt.Fprintln(&out, "  "+fact)
				}
			}
			continue
		}
		of := read(t, line)
		facts := run(f, of, objects)
		if again := run(f, of, objects); !slices.Equal(facts, again) {
			t.Errorf("%s: the same input gave %v and %v", line, facts, again)
		}
		for _, fact := range facts {
			if !slices.Contains(nothing, fact) {
				fmt.Fprintln(&out, "  "+fact)
			}
		}
		for _, fact := range nothing {
			if kind, _, _ := strings.Cut(fact, " "); !slices.ContainsFunc(facts, func(s string) bool { return strings.HasPrefix(s, kind+" ") }) {
				fmt.Fprintln(&out, "  no "+kind)
			}
		}
	}
	return out.String()
}

// profileFacts are the directives that the feature declares.
func profileFacts(f feature.Feature, p model.Profile) []string {
	facts := []string{fmt.Sprintf("profile access=%v", p.Access)}
	for _, d := range f.Directives {
		facts = append(facts, fmt.Sprintf("profile %s=%d", d.Name, d.Of(p)))
	}
	return facts
}

// untouchedFacts are those of values that no feature wrote to. Golden files do
// not print them: a new field of a profile would change all of them.
func untouchedFacts(f feature.Feature) map[string]bool {
	facts := map[string]bool{"relative false": true}
	for _, fact := range profileFacts(f, model.Profile{}) {
		facts[fact] = true
	}
	for what, value := range map[string]any{
		"mode": model.Mode{}, "balancing": model.Balancing{}, "handshake": model.TLSPolicy{},
		"process": model.Process{}, "tls": model.TLS{},
	} {
		for _, fact := range fields(what, value) {
			facts[fact] = true
		}
	}
	return facts
}

// settings are those of a case.
type settings struct {
	annotations, keys map[string]string
	lacking           []feature.Capability
}

func read(t testing.TB, line string) settings {
	t.Helper()
	s := settings{annotations: map[string]string{}, keys: map[string]string{}}
	for setting := range strings.SplitSeq(line, " | ") {
		what, rest, _ := strings.Cut(strings.TrimSpace(setting), " ")
		lacks := slices.IndexFunc(feature.Capabilities(), func(c feature.Capability) bool { return c.String() == rest })
		name, value, ok := strings.Cut(rest, ":")
		value = strings.TrimPrefix(value, " ")
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		switch {
		case ok && what == "annotation":
			s.annotations[prefix+"/"+name] = value
		case ok && what == "key":
			s.keys[name] = value
		case what == "lacks" && lacks >= 0:
			s.lacking = append(s.lacking, feature.Capabilities()[lacks])
		default:
			t.Fatalf("%q is neither an annotation nor a key, nor what NGINX lacks", setting)
		}
	}
	return s
}

// web is the Ingress whose annotations are read.
var web = model.Origin{Namespace: "default", Ingress: "web"}

// An input is what a feature reads.
type input struct {
	schema   *feature.Schema
	config   *feature.Config
	problems []feature.Problem // of keys
	*feature.Parsed
}

func newInput(features []feature.Feature, of settings, objects feature.Objects) input {
	in := input{schema: feature.NewSchema(prefix, features, of.lacking...)}
	in.config, in.problems = in.schema.Config(of.keys)
	in.Parsed = in.schema.Parse(web, of.annotations, in.config).Attach(objects)
	return in
}

// run is what a feature makes of settings, one fact a line.
func run(f feature.Feature, of settings, objects feature.Objects) []string {
	in := newInput([]feature.Feature{f}, of, objects)
	var facts []string
	problems := append(in.problems, in.Problems()...)
	for _, part := range []func(feature.Feature, input) ([]string, []feature.Problem){ofRoute, ofIngress, ofHost, ofBackend, ofProcess} {
		more, found := part(f, in)
		facts, problems = append(facts, more...), append(problems, found...)
	}
	if in.Denied() && !slices.Contains(facts, deniedRoute) {
		facts = append(facts, deniedRoute)
	}
	slices.SortStableFunc(problems, func(a, b feature.Problem) int { return cmp.Compare(a.Field, b.Field) })
	for _, p := range problems {
		facts = append(facts, fmt.Sprintf("problem %s: %s; %s", p.Field, p.Message, p.Effect))
	}
	return facts
}

// deniedRoute is the fact that an Ingress's paths answer 503.
const deniedRoute = "denied the route"

// routeOf is a route of the Ingress with what the feature writes. The host has an
// open route for what begins with /open.
func routeOf(f feature.Feature, in input) (*model.Route, feature.Report) {
	out := feature.RouteOut{
		Report: feature.NewReport(in.Values(), "the paths of this Ingress answer 503"),
		Route:  &model.Route{Origin: web, Kind: model.Prefix, Path: "/", Backend: "default/web/80"},
		Host:   feature.Host{Name: "web.example.com", Answers: func(path string) bool { return strings.HasPrefix(path, "/open") }},
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
		facts = append(facts, fields("mode", route.Mode)...)
		facts = append(facts, fmt.Sprintf("relative %v", route.Relative))
	}
	if route.SatisfyAny {
		facts = append(facts, "one auth check is enough")
	}
	if route.Fallback != "" {
		facts = append(facts, "fallback "+route.Fallback)
	}
	for _, p := range route.Policies {
		facts = append(facts, "policy "+p.Feature+" "+plain(p.Value))
	}
	for _, c := range route.Contents {
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
	const denial = "all requests for host web.example.com are answered 503"
	merged := in.schema.Merge(feature.ScopeHost, in.config, []*feature.Parsed{in.Parsed}, denial)
	out := feature.HostOut{Report: feature.NewReport(merged.Values, denial), TLS: &model.TLSPolicy{}}
	f.Host(merged.Values, &out)
	if out.Policy != nil {
		facts = append(facts, "of the host "+plain(out.Policy))
	}
	facts = append(facts, fields("handshake", *out.TLS)...)
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
	const denial = "all requests for backend default/web/80 are answered 503"
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
	out := feature.ProcessOut{Report: feature.NewReport(in.config.Values(), "using the default"), Process: &model.Process{}}
	if f.Process(in.config.Values(), &out); out.Policy != nil {
		facts = append(facts, "globals "+plain(out.Policy))
	}
	own := func(fact string) bool { return strings.HasPrefix(fact, "process TLS=") }
	facts = append(facts, slices.DeleteFunc(fields("process", *out.Process), own)...)
	if out.Process.TLS != (model.TLS{}) {
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
		if set, ok := field.(interface{ Empty() bool }); !ok || !set.Empty() {
			facts = append(facts, fmt.Sprintf("%s %s=%v", what, v.Type().Field(i).Name, field))
		}
	}
	return facts
}
