// Package featuretest holds features to golden files.
//
// A file is a comment, a section "in" and a section "out". Each line of "in"
// is one case: settings between bars, each "annotation NAME: VALUE" or "key
// NAME: VALUE". An empty line is a case without any. Values in quotes are Go
// strings. "out" repeats each case and says what the feature makes of it, as
// far as it differs from what it makes of nothing; for nothing it says all.
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
	got := outcomes(t, f, in)
	if *update {
		archive.Files = []txtar.File{archive.Files[0], {Name: "out", Data: []byte(got)}}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return in
	}
	if len(archive.Files) != 2 || string(archive.Files[1].Data) != got {
		t.Errorf("got:\n%s\n(go test -update writes it)", got)
	}
	return in
}

func outcomes(t *testing.T, f feature.Feature, in string) string {
	t.Helper()
	nothing := run(f, nil, nil)
	var out strings.Builder
	for line := range strings.Lines(in) {
		line = strings.TrimSuffix(line, "\n")
		fmt.Fprintln(&out, strings.TrimSpace("> "+line))
		if line == "" {
			for _, fact := range nothing {
				fmt.Fprintln(&out, "  "+fact)
			}
			continue
		}
		annotations, keys := settings(t, line)
		facts := run(f, annotations, keys)
		if again := run(f, annotations, keys); !slices.Equal(facts, again) {
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

func settings(t *testing.T, line string) (annotations, keys map[string]string) {
	t.Helper()
	annotations, keys = map[string]string{}, map[string]string{}
	for setting := range strings.SplitSeq(line, " | ") {
		what, rest, _ := strings.Cut(strings.TrimSpace(setting), " ")
		name, value, ok := strings.Cut(rest, ":")
		value = strings.TrimPrefix(value, " ")
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		switch {
		case ok && what == "annotation":
			annotations[prefix+"/"+name] = value
		case ok && what == "key":
			keys[name] = value
		default:
			t.Fatalf("%q is neither an annotation nor a key", setting)
		}
	}
	return annotations, keys
}

// run is what a feature makes of settings, one fact a line.
func run(f feature.Feature, annotations, keys map[string]string) []string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	config, problems := feature.NewConfig([]feature.Feature{f}, keys)
	var facts []string
	route := model.Route{Origin: model.Origin{Namespace: "default", Ingress: "web"}}
	if f.Route != nil {
		reader, next := feature.NewReader(prefix, annotations, config), route
		f.Route(reader, &route)
		if f.Route(reader, &next); !reflect.DeepEqual(route, next) {
			facts = append(facts, fmt.Sprintf("the next route of the same Ingress got %+v", next))
		}
		facts = append(facts, fields("profile", route.Profile)...)
		for _, p := range route.Policies {
			facts = append(facts, "policy "+p.Feature+" "+plain(p.Value))
		}
		if reader.Denied() {
			facts = append(facts, "denied the route")
		}
		problems = append(problems, reader.Problems()...)
	}
	if f.Aliases != nil {
		facts = append(facts, fmt.Sprintf("aliases %q", f.Aliases(feature.NewReader(prefix, annotations, config))))
	}
	if f.Fallback != nil {
		facts = append(facts, fmt.Sprintf("fallback %q", f.Fallback(feature.NewReader(prefix, annotations, config))))
	}
	if f.Backend != nil {
		reader, balancing := feature.NewReader(prefix, annotations, config), model.Balancing{}
		f.Backend(reader, &balancing)
		facts = append(facts, fields("balancing", balancing)...)
		problems = append(problems, reader.Problems()...)
	}
	if f.Patterns != nil && f.Patterns(feature.NewReader(prefix, annotations, config), "/") {
		facts = append(facts, "patterns")
	}
	if f.Global != nil {
		facts = append(facts, "globals "+plain(f.Global(feature.NewReader(prefix, nil, config))))
	}
	if f.Process != nil {
		var process model.Process
		f.Process(feature.NewReader(prefix, nil, config), &process)
		facts = append(facts, fields("process", process)...)
	}
	slices.SortStableFunc(problems, func(a, b feature.Problem) int { return cmp.Compare(a.Field, b.Field) })
	for _, p := range problems {
		facts = append(facts, fmt.Sprintf("problem %s: %s; %s", p.Field, p.Message, p.Effect))
	}
	return facts
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

func fields(what string, value any) []string {
	v := reflect.ValueOf(value)
	facts := make([]string, v.NumField())
	for i := range facts {
		facts[i] = fmt.Sprintf("%s %s=%v", what, v.Type().Field(i).Name, v.Field(i).Interface())
	}
	return facts
}
