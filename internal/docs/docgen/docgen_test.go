package docgen

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/ingressnginx"
)

var update = flag.Bool("update", false, "rewrite the pages")

// A kind is a kind of settings: annotations, or keys.
type kind struct {
	name    string
	known   string // the table of the settings of ingress-nginx
	page    string
	refused []ingressnginx.Refusal
	differ  []difference
	of      func(feature.SettingSpec) string
	write   func([]feature.Feature, []ingressnginx.Refusal) string
}

func kinds() []kind {
	return []kind{
		{
			"annotations", "../../../test/compat/annotations.tsv", "../../../docs/annotations.md",
			ingressnginx.RefusedAnnotations(), annotationDifferences(), func(d feature.SettingSpec) string { return d.Annotation }, Annotations,
		},
		{
			"keys", "../../../test/compat/configmap.tsv", "../../../docs/configmap.md",
			ingressnginx.RefusedKeys(), keyDifferences(), func(d feature.SettingSpec) string { return d.Key }, Keys,
		},
	}
}

// A known setting is one of ingress-nginx. Default, Risk and BadValue ("default"
// or "deny") are empty if it has none.
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

// declared returns the settings of features by name.
func (k kind) declared(t *testing.T, features []feature.Feature) map[string]feature.AnySetting {
	t.Helper()
	settings := map[string]feature.AnySetting{}
	for _, s := range feature.AllSettings(features) {
		if name := k.of(s.Spec()); name != "" {
			if settings[name] != nil {
				t.Errorf("two features have the %s %s", k.name, name)
			}
			settings[name] = s
		}
	}
	return settings
}

// TestPages compares docs/annotations.md and docs/configmap.md with the features.
func TestPages(t *testing.T) {
	for _, k := range kinds() {
		text := k.write(all.Features(), k.refused)
		reversed := all.Features()
		slices.Reverse(reversed)
		if k.write(reversed, k.refused) != text {
			t.Errorf("%s depends on the order of the features", k.page)
		}
		if *update {
			write(t, k.page, text)
		}
		if read(t, k.page) != text {
			t.Errorf("%s is not what the features declare (go test ./internal/docs/docgen -update writes it)", k.page)
		}
	}
}

// TestEverySettingIsAccountedFor counts the settings of ingress-nginx: each is
// either declared or refused for a reason.
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
		count := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(knownSettings)) {
			as := account[name]
			if len(as) != 1 {
				t.Errorf("ingress-nginx's %s (%s) is %q, want one of done and refused", name, knownSettings[name].Status, as)
				continue
			}
			count[as[0]]++
		}
		for name, as := range account {
			if _, ok := knownSettings[name]; !ok && as[0] != "done" {
				t.Errorf("%s is %s, but ingress-nginx never had it", name, as[0])
			}
		}
		t.Logf("%s: %d of %d done, %d refused", k.name, count["done"], len(knownSettings), count["refused"])
	}
}

// TestReplacementsExist: what a refusal says to use instead is a setting.
func TestReplacementsExist(t *testing.T) {
	exists := map[string]bool{}
	for _, k := range kinds() {
		for name := range k.declared(t, all.Features()) {
			exists[name] = true
		}
	}
	for _, k := range kinds() {
		for _, r := range k.refused {
			for _, quoted := range regexp.MustCompile("`([^`:]+)[^`]*`").FindAllStringSubmatch(r.Reason, -1) {
				if name := quoted[1]; !exists[name] && !strings.HasPrefix(name, "--") {
					t.Errorf("%v: there is no setting %s", r.Names, name)
				}
			}
		}
	}
}

// A difference from ingress-nginx, and why.
type difference struct {
	name string
	// what is "risk", "default" or "bad value".
	what, ours, theirs, reason string
}

// onBadValue returns what an invalid value does, in the words of the table of
// ingress-nginx's settings.
func onBadValue(on feature.OnInvalid) string {
	if on == feature.Deny {
		return "deny"
	}
	return "default"
}

// TestRisksAndDefaults compares with ingress-nginx: each difference is listed with
// a reason, and everything listed differs. docs/differences.md must describe
// other effects of invalid values.
func TestRisksAndDefaults(t *testing.T) {
	page := read(t, "../../../docs/differences.md")
	for _, k := range kinds() {
		listed := map[string]bool{}
		for _, d := range k.differ {
			listed[fmt.Sprintf("%s: %s %q, ingress-nginx: %q", d.name, d.what, d.ours, d.theirs)] = d.reason != ""
		}
		knownSettings, have := k.knownSettings(t), k.declared(t, all.Features())
		for _, name := range slices.Sorted(maps.Keys(have)) {
			s, theirs := have[name], knownSettings[name]
			var differ []string
			if risk := s.Spec().Risk.String(); theirs.Risk != "" && risk != theirs.Risk {
				differ = append(differ, fmt.Sprintf("%s: risk %q, ingress-nginx: %q", name, risk, theirs.Risk))
			}
			if theirs.Status == "active" && !isDefault(s, theirs.Default) {
				ours, _ := defaultOf(s)
				differ = append(differ, fmt.Sprintf("%s: default %q, ingress-nginx: %q", name, ours, theirs.Default))
			}
			if on := onBadValue(s.Spec().OnInvalid); theirs.BadValue != "" && on != theirs.BadValue {
				differ = append(differ, fmt.Sprintf("%s: bad value %q, ingress-nginx: %q", name, on, theirs.BadValue))
				if !strings.Contains(page, "`"+name+"`") {
					t.Errorf("%s: an invalid value has another effect than in ingress-nginx, but docs/differences.md does not mention it", name)
				}
			}
			for _, d := range differ {
				if !listed[d] {
					t.Errorf("%s; the differences lack it, or have no reason for it", d)
				}
				delete(listed, d)
			}
		}
		for d := range listed {
			t.Errorf("%s; it is listed as a difference, but there is none", d)
		}
	}
}

// TestSettingsCanBeWritten expects each default to be a valid value of its
// setting, or the zero value.
func TestSettingsCanBeWritten(t *testing.T) {
	for _, s := range feature.AllSettings(all.Features()) {
		d := s.Spec()
		if _, ok := defaultOf(s); !ok {
			t.Errorf("%s%s: no text means its default %v", d.Annotation, d.Key, d.Default)
		}
		if !strings.HasSuffix(d.Doc, ".") || strings.ContainsAny(d.Doc, "\n\x00") {
			t.Errorf("%s%s: its doc %q is not a sentence", d.Annotation, d.Key, d.Doc)
		}
	}
}
