package all_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// TestNoWayIn gives one Ingress each annotation with hostile values, alone and
// within good ones, beside the annotations and keys that it needs to count.
// nginx.conf stays as it was to the byte, but for digests, and nothing of other Ingresses changes.
//
// No value is passed over in silence: each has a finding, or an effect, or is
// the default. Exempt are, each by name: a value that counts as another one
// without a finding, since drop-in users have such values and the docs say which
// it is, or that is the default in other words (countsAs); and all values of an
// annotation that does nothing, since there is no effect to see (featuretest.Idle).
func TestNoWayIn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	cases := featuretest.Cases(t, "..", all.Features())
	settings := map[string]feature.AnySetting{}
	for _, s := range feature.AllSettings(all.Features()) {
		settings[s.Spec().Annotation] = s
	}
	delete(settings, "")
	var tried, refused atomic.Int64
	t.Run("annotations", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				of, refusedOf := tryHostile(t, settings[name], setupsOf(t, cases, name))
				tried.Add(of)
				refused.Add(refusedOf)
			})
		}
	})
	t.Logf("%d values for %d annotations, %d of them refused", tried.Load(), len(settings), refused.Load())
	if refused.Load() < tried.Load()/2 {
		t.Error("too few are refused for the values to be hostile")
	}
}

// tryHostile gives an annotation hostile values, and says how many there were, and how many were refused.
func tryHostile(t *testing.T, s feature.AnySetting, setups []setup) (tried, refused int64) {
	name, idle := s.Spec().Annotation, featuretest.Idle()
	if works := slices.ContainsFunc(setups, setup.works); !works && idle[name] == "" {
		t.Errorf("%s: no golden case has a good value that changes anything, with all it needs beside it", name)
	} else if works && idle[name] != "" {
		t.Errorf("%s: a good value changes something, though %s", name, idle[name])
	}
	if idle[name] != "" {
		setups = setups[:1] // What stands beside it makes no difference.
	}
	for _, value := range featuretest.Hostile(setups[0].good) {
		tried++
		parsed, err := s.Spec().Parse(strings.TrimSpace(value))
		reported, effect := false, err == nil && reflect.DeepEqual(parsed, s.Spec().Default)
		// What a value does may need one thing beside it and not another.
		for _, setup := range setups {
			findings, changes := setup.try(t, name, value)
			reported = reported || findings
			if effect = effect || changes; reported || effect {
				break
			}
		}
		if reported {
			refused++
		} else if err != nil {
			t.Errorf("%s: %s is refused without a finding: %v", name, shown(value), err)
		} else if !effect && countsAs[[2]string{name, value}] == "" && idle[name] == "" {
			t.Errorf("%s: %s is taken, and changes nothing", name, shown(value))
		}
	}
	return tried, refused
}

// countsAs are hostile values that count as another value without a finding, as
// with ingress-nginx, by annotation, and what its docs say of that.
var countsAs = map[[2]string]string{
	{"canary-weight", "-1"}:           "less than 0 is 0",
	{"canary-weight-total", "-1"}:     "less than 100 is 100",
	{"cors-allow-origin", "*"}:        "* is the default",
	{"limit-connections", "-1"}:       "0 and less counts as none",
	{"limit-rate-after", "-1"}:        "less than 0 is 0",
	{"limit-rpm", "-1"}:               "0 and less counts as none",
	{"limit-rps", "-1"}:               "0 and less counts as none",
	{"permanent-redirect-code", "-1"}: "an invalid code is 301",
	{"temporal-redirect-code", "-1"}:  "an invalid code is 302",
}

// A setup is the annotations that another one may need beside it.
type setup struct {
	featuretest.Case
	good string
	// without, with and nothing are what is built without the other one, with a
	// good value of it, and without any.
	without, with, nothing *output
}

// setupsOf are what golden cases have beside an annotation, the richest first.
func setupsOf(t *testing.T, cases []featuretest.Case, name string) []setup {
	t.Helper()
	var setups []setup
	for _, c := range featuretest.Beside(cases, name) {
		b := setup{Case: c, good: c.Annotations[name], nothing: builtWith(t, nil, c.All()...)}
		b.Annotations = maps.Clone(c.Annotations)
		b.with = builtWith(t, b.Annotations, b.All()...)
		delete(b.Annotations, name)
		b.without = builtWith(t, b.Annotations, b.All()...)
		setups = append(setups, b)
	}
	return setups
}

// works reports whether a good value of the annotation is taken, and changes
// anything.
func (b setup) works() bool {
	return b.good != "" && !b.with.denied && len(difference(b.without.parts, b.with.parts)) > 0
}

// try reports whether a value of an annotation is reported, and whether it changes
// anything. It must not change what is not its own.
func (b setup) try(t *testing.T, name, value string) (reported, changes bool) {
	t.Helper()
	annotations := maps.Clone(b.Annotations)
	annotations[name] = value
	after := builtWith(t, annotations, b.All()...)
	// A value that denies takes away what stands beside it; one that is taken
	// may do what a good one does.
	same := func(o *output) bool { return o.conf == after.conf || undigested(o.conf) == undigested(after.conf) }
	if !same(b.without) && !same(b.with) && !same(b.nothing) {
		t.Errorf("%s: %s changes nginx.conf: %s", name, shown(value), lineOf(b.without.conf, after.conf))
	}
	changed := difference(b.without.parts, after.parts)
	for _, part := range changed {
		if was := b.without.parts[part]; was != "" && !mayChange(name, part) {
			t.Errorf("%s: %s changes %s from\n%s\nto\n%.1000s", name, shown(value), part, was, after.parts[part])
		}
	}
	return hasFinding(t, after.findings, name), len(changed) > 0
}

var digest = regexp.MustCompile(`[0-9a-f]{40,}`)

// undigested has the same lines for the same nginx.conf with other digests in names, which
// are its order too.
func undigested(conf string) string {
	lines := strings.Split(digest.ReplaceAllString(conf, "DIGEST"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// hasFinding reports whether there is a finding for an annotation of default/mine.
func hasFinding(t *testing.T, findings []finding.Finding, name string) bool {
	t.Helper()
	for _, f := range findings {
		if text := f.String(); len(text) > 1500 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\n\x1b") {
			t.Errorf("%s: the finding %.100q… of %d bytes can't be shown", name, text, len(text))
		}
	}
	return slices.ContainsFunc(findings, func(f finding.Finding) bool {
		return f.Object == "ingress/default/mine" && f.Field == prefix+"/"+name
	})
}

func shown(value string) string {
	const most = 60
	if len(value) > most {
		return strings.ToValidUTF8(value[:most], "?") + "…"
	}
	return value
}

// lineOf is the first line that differs.
func lineOf(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return ""
}
