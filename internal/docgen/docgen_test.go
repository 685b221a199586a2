package docgen

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
)

var update = flag.Bool("update", false, "write the pages anew, and take what is there now off the lists of what is missing")

// A kind is what is counted: annotations, or keys.
type kind struct {
	name    string
	known   string // the table of what the predecessor had
	missing string // the list of what is not there yet; it only gets shorter
	page    string
	refused []Refusal
	differ  []difference
	of      func(feature.Declaration) string
	write   func([]feature.Feature, []Refusal, []string) string
}

func kinds() []kind {
	return []kind{
		{
			"annotations", "../../test/compat/annotations.tsv", "testdata/missing-annotations.txt", "../../docs/annotations.md",
			RefusedAnnotations(), annotationDifferences(), func(d feature.Declaration) string { return d.Annotation }, Annotations,
		},
		{
			"keys", "../../test/compat/configmap.tsv", "testdata/missing-keys.txt", "../../docs/configmap.md",
			RefusedKeys(), keyDifferences(), func(d feature.Declaration) string { return d.Key }, Keys,
		},
	}
}

// A known setting is one that the predecessor had. Without a default Default is
// empty, and so are Risk and BadValue ("default" or "deny") where it has none.
type known struct{ Risk, Default, Status, BadValue string }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (k kind) knownSettings(t *testing.T) map[string]known {
	t.Helper()
	settings := map[string]known{}
	var columns []string
	for line := range strings.Lines(read(t, k.known)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case columns == nil:
			columns = cells
			continue
		case len(cells) != len(columns) || settings[cells[0]] != known{}:
			t.Fatalf("%s: the line %q is broken or stands twice", k.known, line)
		}
		cell := func(name string) string {
			if i := slices.Index(columns, name); i >= 0 && cells[i] != "-" {
				return cells[i]
			}
			return ""
		}
		settings[cells[0]] = known{cell("risk"), cell("default"), cell("status"), cell("bad-value")}
	}
	return settings
}

// declared are the settings that features have, by name. What only denies is
// not among them.
func (k kind) declared(t *testing.T, features []feature.Feature) map[string]feature.Declared {
	t.Helper()
	settings := map[string]feature.Declared{}
	features = slices.DeleteFunc(slices.Clone(features), func(f feature.Feature) bool { return f.Name == Unsupported })
	for _, s := range feature.Declarations(features) {
		if name := k.of(s.Declaration()); name != "" {
			if settings[name] != nil {
				t.Errorf("two features have the %s %s", k.name, name)
			}
			settings[name] = s
		}
	}
	return settings
}

func (k kind) missingNames(t *testing.T) []string {
	t.Helper()
	return strings.Fields(read(t, k.missing))
}

// TestPages holds docs/annotations.md and docs/configmap.md to the features.
func TestPages(t *testing.T) {
	for _, k := range kinds() {
		if *update {
			have := k.declared(t, all.Features())
			left := slices.DeleteFunc(k.missingNames(t), func(name string) bool { return have[name] != nil })
			write(t, k.missing, strings.Join(left, "\n")+"\n")
		}
		text := k.write(all.Features(), k.refused, k.missingNames(t))
		reversed := all.Features()
		slices.Reverse(reversed)
		if k.write(reversed, k.refused, k.missingNames(t)) != text {
			t.Errorf("%s depends on the order of the features", k.page)
		}
		if *update {
			write(t, k.page, text)
		}
		if read(t, k.page) != text {
			t.Errorf("%s is not what the features declare (go test ./internal/docgen -update writes it)", k.page)
		}
	}
}

// TestEverySettingIsAccountedFor counts: what the predecessor had is either
// there, refused for a reason, or missing, and nothing is two of them.
func TestEverySettingIsAccountedFor(t *testing.T) {
	for _, k := range kinds() {
		knownSettings, have := k.knownSettings(t), k.declared(t, all.Features())
		account := map[string][]string{}
		for name := range have {
			account[name] = append(account[name], "done")
		}
		for _, r := range k.refused {
			for _, name := range r.Names {
				account[name] = append(account[name], "refused")
			}
			if r.Reason == "" {
				t.Errorf("%v are refused for no reason", r.Names)
			}
		}
		missing := k.missingNames(t)
		for _, name := range missing {
			account[name] = append(account[name], "missing")
		}
		if !slices.IsSorted(missing) {
			t.Errorf("%s is not sorted", k.missing)
		}
		count := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(knownSettings)) {
			as := account[name]
			if len(as) != 1 {
				t.Errorf("the predecessor's %s (%s) is %q, want one of done, refused and missing "+
					"(go test ./internal/docgen -update takes off %s what is done)", name, knownSettings[name].Status, as, k.missing)
				continue
			}
			count[as[0]]++
		}
		for name, as := range account {
			if _, ok := knownSettings[name]; !ok && as[0] != "done" {
				t.Errorf("%s is %s, and the predecessor never had it", name, as[0])
			}
		}
		t.Logf("%s: %d of %d done, %d refused, %d missing", k.name, count["done"], len(knownSettings), count["refused"], count["missing"])
	}
}

// A difference of ours from the predecessor, and why.
type difference struct {
	name string
	// what is "risk", "default" or "bad value".
	what, ours, theirs, reason string
}

// onBadValue is what a bad value does, in the words of the table of what the
// predecessor had.
func onBadValue(on feature.OnInvalid) string {
	if on == feature.Deny {
		return "deny"
	}
	return "default"
}

// TestRisksAndDefaults compares with the predecessor's: what differs is listed
// with a reason, and what is listed differs. What a bad value does else,
// docs/differences.md has to say.
func TestRisksAndDefaults(t *testing.T) {
	page := read(t, "../../docs/differences.md")
	for _, k := range kinds() {
		listed := map[string]bool{}
		for _, d := range k.differ {
			listed[fmt.Sprintf("%s: %s %q, there %q", d.name, d.what, d.ours, d.theirs)] = d.reason != ""
		}
		knownSettings, have := k.knownSettings(t), k.declared(t, all.Features())
		for _, name := range slices.Sorted(maps.Keys(have)) {
			s, theirs := have[name], knownSettings[name]
			var differ []string
			if risk := s.Declaration().Risk.String(); theirs.Risk != "" && risk != theirs.Risk {
				differ = append(differ, fmt.Sprintf("%s: risk %q, there %q", name, risk, theirs.Risk))
			}
			if theirs.Status == "active" && !isDefault(s, theirs.Default) {
				ours, _ := defaultOf(s)
				differ = append(differ, fmt.Sprintf("%s: default %q, there %q", name, ours, theirs.Default))
			}
			if on := onBadValue(s.Declaration().OnInvalid); theirs.BadValue != "" && on != theirs.BadValue {
				differ = append(differ, fmt.Sprintf("%s: bad value %q, there %q", name, on, theirs.BadValue))
				if !strings.Contains(page, "`"+name+"`") {
					t.Errorf("%s: a bad value of it does something else than in ingress-nginx, and docs/differences.md does not say so", name)
				}
			}
			for _, d := range differ {
				if !listed[d] {
					t.Errorf("%s; it is not among the differences, or has no reason there", d)
				}
				delete(listed, d)
			}
		}
		for d := range listed {
			t.Errorf("%s; it is among the differences and is none", d)
		}
	}
}

// TestSettingsCanBeWritten expects each default to be something that the
// setting itself takes, or nothing.
func TestSettingsCanBeWritten(t *testing.T) {
	for _, s := range feature.Declarations(all.Features()) {
		d := s.Declaration()
		if _, ok := defaultOf(s); !ok {
			t.Errorf("%s%s: no text means its default %v", d.Annotation, d.Key, d.Default)
		}
		if !strings.HasSuffix(d.Doc, ".") || strings.ContainsAny(d.Doc, "\n\x00") {
			t.Errorf("%s%s: its doc %q is no sentence", d.Annotation, d.Key, d.Doc)
		}
	}
}
