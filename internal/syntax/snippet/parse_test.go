package snippet

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// places are the places by the names of files in the tests' archives.
func places() map[string]Place {
	return map[string]Place{"location": InLocation, "server": InServer, "auth": InAuth}
}

// update reads the flag -update, as other packages have it.
var update = flag.Bool("update", false, "write the results of golden tests")

// TestGolden compares what texts become with the archives in testdata.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := golden(t, archive)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// golden writes each text of an archive with what it becomes behind it.
func golden(t *testing.T, archive *txtar.Archive) []byte {
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		name, place, _ := strings.Cut(f.Name, ".")
		if place == "result" {
			continue
		}
		at, ok := places()[place]
		if !ok {
			t.Fatalf("unknown place %q", place)
		}
		result := Parse(string(f.Data), at, Options{Defined: []string{"elsewhere"}, Administrator: []string{"geoip_country_code"}})
		out.Files = append(out.Files, f, txtar.File{Name: name + ".result", Data: describe(t, result)})
	}
	return txtar.Format(out)
}

// describe writes what a text becomes: each step, list of effects, location and the rest on
// a line of its own.
func describe(t *testing.T, s *Snippet) []byte {
	var b bytes.Buffer
	line := func(indent int, word string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{"<", ">", "&"} {
			text = bytes.ReplaceAll(text, fmt.Appendf(nil, "\\u%04x", code[0]), []byte(code))
		}
		fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat(" ", indent), word, text)
	}
	var show func(indent int, p program.Program)
	show = func(indent int, p program.Program) {
		for _, step := range p.Steps {
			line(indent, "step", step)
		}
		for i, e := range p.Effects {
			line(indent, fmt.Sprint("effects ", i), e)
		}
		for _, l := range p.Locations {
			inner := l.Program
			l.Program = program.Program{}
			line(indent, "location", l)
			show(indent+1, inner)
		}
	}
	show(0, s.Program)
	for _, one := range s.Settings {
		line(0, "setting", one)
	}
	for _, r := range s.Refusals {
		fmt.Fprintf(&b, "refusal on line %d: %s: %s (instead: %s; effect: %s; guards: %t)\n", r.Line, r.Directive, r.Reason, r.Instead, r.Effect, r.Guards)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning on line %d: %s: %s (idle: %t)\n", w.Line, w.Directive, w.Message, w.Idle)
	}
	if s.Defines != nil {
		line(0, "defines", s.Defines)
	}
	return b.Bytes()
}
