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

var update = flag.Bool("update", false, "write the golden files anew")

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
		d := s.Declaration()
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
			t.Fatalf("the section %q is no object", s.Name)
		}
		object := part[0] + " " + part[1]
		if data[object] == nil {
			data[object] = map[string]string{}
		}
		data[object][part[2]] = strings.TrimSuffix(string(s.Data), "\n")
	}
	return data
}

// objectsOf shows objects to a Reader.
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

// An input is what a feature reads.
type input struct {
	annotations map[string]string
	config      *feature.Config
	objects     feature.Objects
}

func (in input) reader() *feature.Reader {
	return feature.NewReader(prefix, in.annotations, in.config)
}

// run is what a feature makes of settings, one fact a line.
func run(f feature.Feature, of settings, objects feature.Objects) []string {
	if of.annotations == nil {
		of.annotations = map[string]string{}
	}
	config, problems := feature.NewConfig([]feature.Feature{f}, of.keys)
	var facts []string
	in := input{of.annotations, config.Lacking(of.lacking...), objects}
	for _, part := range []func(feature.Feature, input) ([]string, []feature.Problem){ofRoute, ofHost, ofService, ofHandshake, ofGroup, ofAll} {
		more, found := part(f, in)
		facts, problems = append(facts, more...), append(problems, found...)
	}
	slices.SortStableFunc(problems, func(a, b feature.Problem) int { return cmp.Compare(a.Field, b.Field) })
	for _, p := range problems {
		facts = append(facts, fmt.Sprintf("problem %s: %s; %s", p.Field, p.Message, p.Effect))
	}
	return facts
}

// These facts are that an Ingress's paths answer 503, as a feature reads it for a
// route and for a host's handshakes.
const deniedRoute, deniedRoutes = "denied the route", "denied the routes"

// ofRoute is what becomes of a route.
func ofRoute(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	if f.Route == nil {
		return nil, nil
	}
	ingress := model.Origin{Namespace: "default", Ingress: "web"}
	route := model.Route{Origin: ingress, Kind: model.Prefix, Path: "/"}
	// Host and Answers are what the features of one host see: it has an open route
	// for what begins with /open.
	host := feature.Host{Name: "web.example.com", Answers: func(path string) bool { return strings.HasPrefix(path, "/open") }}
	reader, next := in.reader().Of(ingress, in.objects).On(host), route
	f.Route(reader, &route)
	if f.Route(reader, &next); !reflect.DeepEqual(route, next) {
		facts = append(facts, fmt.Sprintf("the next route of the same Ingress got %+v", next))
	}
	facts = append(facts, profileFacts(f, route.Profile)...)
	facts = append(facts, fields("mode", route.Mode)...)
	facts = append(facts, fmt.Sprintf("relative %v", route.Relative))
	if route.AnyJudge {
		facts = append(facts, "one judge is enough")
	}
	for _, p := range route.Policies {
		facts = append(facts, "policy "+p.Feature+" "+plain(p.Value))
	}
	for _, c := range route.Contents {
		facts = append(facts, fmt.Sprintf("content %.8s… %q", c.Name, string(c.Bytes)))
	}
	if reader.Denied() {
		facts = append(facts, deniedRoute)
	}
	problems = reader.Problems()
	for _, ref := range feature.Refer(reader, f.Settings) {
		facts = append(facts, fmt.Sprintf("refers to %s %s", ref.Kind, ref.ObjectName))
	}
	return facts, problems
}

// profileFacts are the directives that the feature declares.
func profileFacts(f feature.Feature, p model.Profile) []string {
	facts := []string{fmt.Sprintf("profile access=%v", p.Access)}
	for _, d := range f.Directives {
		facts = append(facts, fmt.Sprintf("profile %s=%d", d.Name, d.Of(p)))
	}
	return facts
}

// ofHost is what becomes of the hosts, and of the way in which the Ingress
// takes part in them.
func ofHost(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	if f.Aliases != nil {
		facts = append(facts, fmt.Sprintf("aliases %q", f.Aliases(in.reader())))
	}
	if f.Host != nil && f.Group == nil {
		if value := f.Host(in.reader()); value != nil {
			facts = append(facts, "of the host "+plain(value))
		}
	}
	if f.Twin != nil && f.Twin(in.reader()) {
		facts = append(facts, "claims the twin")
	}
	if f.Alternative != nil {
		reader := in.reader()
		if when, ok := f.Alternative(reader); ok {
			facts = append(facts, "stands aside "+plain(when))
		}
		problems = reader.Problems()
	}
	if f.Patterns != nil && f.Patterns(in.reader(), "/") {
		facts = append(facts, "patterns")
	}
	return facts, problems
}

// ofService is what becomes of the services that are asked.
func ofService(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	if f.Calls != nil {
		for _, call := range f.Calls(in.reader()) {
			facts = append(facts, fmt.Sprintf("calls %+v by backend %q", call, call.Backend()))
		}
	}
	if f.Fallback != nil {
		facts = append(facts, fmt.Sprintf("fallback %q", f.Fallback(in.reader())))
	}
	if f.Backend != nil {
		reader, balancing := in.reader(), model.Balancing{}
		f.Backend(reader, &balancing)
		facts = append(facts, fields("balancing", balancing)...)
		problems = reader.Problems()
	}
	return facts, problems
}

// ofHandshake is what becomes of TLS handshakes.
func ofHandshake(f feature.Feature, in input) ([]string, []feature.Problem) {
	if f.Handshake == nil || f.Group != nil {
		return nil, nil
	}
	reader, policy := in.reader(), model.TLSPolicy{}
	f.Handshake(reader, &policy)
	facts := fields("handshake", policy)
	if reader.Denied() {
		facts = append(facts, deniedRoutes)
	}
	return facts, reader.Problems()
}

// ofGroup is what becomes of a host over which the Ingress decides by a group.
func ofGroup(f feature.Feature, in input) (facts []string, _ []feature.Problem) {
	if f.Group == nil {
		return nil, nil
	}
	if _, asks := in.annotations[prefix+"/"+f.Group.Leading.Declaration().Annotation]; !asks {
		return nil, nil
	}
	reader := in.reader().Of(model.Origin{Namespace: "default", Ingress: "web"}, in.objects).On(feature.Host{Name: "web.example.com"}).Deciding()
	var policy any
	var handshake model.TLSPolicy
	if f.Host != nil {
		policy = f.Host(reader)
	}
	if f.Handshake != nil {
		f.Handshake(reader, &handshake)
	}
	if reader.Denied() {
		policy, handshake = f.Group.Bad, model.TLSPolicy{}
		facts = append(facts, "bad")
	}
	facts = append(facts, "of the host "+plain(policy))
	facts = append(facts, fields("handshake", handshake)...)
	for _, ref := range feature.Refer(reader, f.Settings) {
		facts = append(facts, fmt.Sprintf("refers to %s %s", ref.Kind, ref.ObjectName))
	}
	return facts, reader.Problems()
}

// ofAll is what becomes of all requests, and of NGINX.
func ofAll(f feature.Feature, in input) (facts []string, problems []feature.Problem) {
	reader := input{config: in.config}.reader()
	if f.Global != nil {
		facts = append(facts, "globals "+plain(f.Global(reader)))
	}
	if f.Process != nil {
		var process model.Process
		f.Process(reader, &process)
		own := func(fact string) bool { return strings.HasPrefix(fact, "process TLS=") }
		facts = append(facts, slices.DeleteFunc(fields("process", process), own)...)
		if process.TLS != (model.TLS{}) {
			facts = append(facts, fields("tls", process.TLS)...)
		}
	}
	return facts, reader.Problems()
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
