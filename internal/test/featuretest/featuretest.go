// Package featuretest holds features to golden files.
//
// A file is a comment, a section "in" and a section "out", and between them the
// data of objects that settings refer to: "secret NAMESPACE/NAME KEY" and
// "configmap NAMESPACE/NAME KEY". The Ingress is default/web. Each line of "in"
// is one case: settings between bars, each "annotation NAME: VALUE" or "key
// NAME: VALUE", or "lacks CAPABILITY", which NGINX then does not have, or
// "appProtocol NAME", which the port of the Service then has. An empty line is a case without any. Values in quotes are Go strings. "out" repeats each
// case and says what the feature makes of it, as far as it differs from what it
// makes of nothing; for nothing it says what the feature wrote.
package featuretest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

// Golden runs the cases of all files in a folder, and expects each setting of
// the feature in one of them.
func Golden(t *testing.T, f feature.Feature, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
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
	facts := []string{fmt.Sprintf("profile access=%v", p.Access), fmt.Sprintf("profile protocol=%v tls=%v", p.Protocol, p.TLS)}
	if p.AsClient {
		facts = append(facts, "profile as client")
	}
	for _, d := range f.Directives {
		facts = append(facts, fmt.Sprintf("profile %s=%s", d.Name, p.Get(d.Name)))
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
		"variant": model.Variant{}, "balancing": model.Balancing{},
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
	appProtocol       string
}

func read(t testing.TB, line string) settings {
	t.Helper()
	s := settings{annotations: map[string]string{}, keys: map[string]string{}}
	for setting := range strings.SplitSeq(line, " | ") {
		what, rest, _ := strings.Cut(strings.TrimSpace(setting), " ")
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
		case what == "lacks":
			s.lacking = append(s.lacking, feature.Capability(rest))
		case what == "appProtocol":
			s.appProtocol = rest
		default:
			t.Fatalf("%q is neither an annotation nor a key, nor what NGINX lacks, nor an appProtocol", setting)
		}
	}
	return s
}

// web is the Ingress whose annotations are read.
var web = model.Origin{Namespace: "default", Ingress: "web"}

// An input is what a feature reads.
type input struct {
	schema *feature.Schema
	config *feature.Config
	// attached is config with the objects that keys refer to.
	attached *feature.Config
	problems []feature.Problem // of keys
	// appProtocol is that of the route's backend.
	appProtocol string
	*feature.Parsed
}

func newInput(features []feature.Feature, of settings, objects feature.Objects) input {
	in := input{schema: feature.NewSchema(prefix, features, of.lacking...), appProtocol: of.appProtocol}
	in.config, in.problems = in.schema.Config(of.keys)
	var missing []feature.Problem
	in.attached, missing = in.config.Attach(objects)
	in.problems = append(in.problems, missing...)
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
