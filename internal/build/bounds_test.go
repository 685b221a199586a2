package build_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

const annotationPrefix = "nginx.ingress.kubernetes.io/"

// wideIngress has a rule with one path for each of many hosts.
func wideIngress(hosts int) *networkingv1.Ingress {
	ing := ingressOf(0, 0)
	rule := ing.Spec.Rules[0]
	ing.Spec.Rules = nil
	for i := range hosts {
		rule.Host = fmt.Sprintf("h%05d.example.com", i)
		ing.Spec.Rules = append(ing.Spec.Rules, rule)
	}
	return ing
}

// buildHosts builds all hosts of a store and returns them with their findings.
func buildHosts(s *store.Store, b *build.Builder) (hosts []model.Host, fs []finding.Finding) {
	for _, key := range s.All() {
		if key.Kind == unit.Host {
			host, _, found := b.Host(key.Name, s)
			hosts, fs = append(hosts, host), append(fs, found...)
		}
	}
	return hosts, fs
}

// TestManyHostsInOneIngress builds 10,000 of them, which takes a minute where
// each host looks at all rules, and else a fraction of a second: a few where the
// race detector looks on.
func TestManyHostsInOneIngress(t *testing.T) {
	s := newStore([]metav1.Object{wideIngress(10_000)})
	began := time.Now()
	hosts, fs := buildHosts(s, newBuilder())
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(hosts) != 10_001 || len(hosts[1].Routes) != 1 || len(fs) != 0 {
		t.Errorf("%d hosts, %v, findings %v", len(hosts), hosts[1], fs)
	}
}

func BenchmarkManyHostsInOneIngress(b *testing.B) {
	s := newStore([]metav1.Object{wideIngress(2000)})
	for b.Loop() {
		buildHosts(s, newBuilder())
	}
}

// TestRulesAreOfTheNewestIngress builds a host again after its Ingress, which
// is wide enough to be remembered, changed.
func TestRulesAreOfTheNewestIngress(t *testing.T) {
	s, builder := newStore([]metav1.Object{wideIngress(100)}), newBuilder()
	buildHosts(s, builder)
	changed := wideIngress(100)
	changed.Spec.Rules = changed.Spec.Rules[7:]
	changed.Spec.Rules[0].HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{changed.Spec.Rules[0].HTTP.Paths[0]}}
	changed.Spec.Rules[0].HTTP.Paths[0].Path = "/new"
	s.Apply(changed, false)
	host, _, _ := builder.Host("h00007.example.com", s)
	if text := hostText(host); !strings.Contains(text, "/new") {
		t.Errorf("built from the old rules:\n%s", text)
	}
}

// TestBadValuesAreReportedWithoutRoutes has an Ingress of which no path is served.
func TestBadValuesAreReportedWithoutRoutes(t *testing.T) {
	ing := manyPaths("one", 2026, "/p-%d", 1)
	ing.Annotations = map[string]string{annotationPrefix + "color": "pink"}
	older := manyPaths("older", 2025, "/p-%d", 1)
	older.Annotations = nil
	_, _, fs := newBuilder().Host("a.example.com", newStore([]metav1.Object{ing, older}))
	if len(fs) != 2 || fs[0].Field != annotationPrefix+"color" || fs[1].Code != finding.Conflict {
		t.Errorf("findings %v", fs)
	}
}

// TestFindingsOfAnIngressAreBounded builds an Ingress that has everything wrong
// on many hosts.
func TestFindingsOfAnIngressAreBounded(t *testing.T) {
	ing := wideIngress(100)
	for i := range 1000 {
		ing.Annotations[fmt.Sprintf("%sunknown-%d", annotationPrefix, i)] = "x"
	}
	ing.Annotations[annotationPrefix+"color"] = strings.Repeat("\x01", 200_000)
	for i := range 1000 {
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{Host: fmt.Sprint("bad_", i)})
	}
	_, fs := buildHosts(newStore([]metav1.Object{ing}), newBuilder())
	codes, size := map[finding.Code]int{}, 0
	for _, f := range fs {
		codes[f.Code]++
		size += len(f.String())
	}
	if codes[finding.UnknownAnnotation] != 51 || codes[finding.InvalidValue] != 51 || len(fs) != 102 || size > 30_000 {
		t.Errorf("findings %v, %d bytes", codes, size)
	}
	for _, want := range []string{"… and 950 more", "… and 951 more", annotationPrefix + "color InvalidValue"} {
		if !strings.Contains(fmt.Sprint(fs), want) {
			t.Errorf("no finding says %q", want)
		}
	}
}

// TestValuesAreParsedOnce counts how often a value is parsed for the routes of
// a host.
func TestValuesAreParsedOnce(t *testing.T) {
	parsed := 0
	counted := feature.Setting[int]{Annotation: "counted", OnInvalid: feature.Deny, Parse: func(string) (int, error) {
		parsed++
		return 0, errors.New("must be nothing")
	}}
	features := []feature.Feature{{
		Name: "counted", Settings: []feature.AnySetting{counted},
		Route: func(v feature.Values, out *feature.RouteOut) { counted.Get(v) },
		Patterns: func(v feature.Values, _ string) feature.AnySetting {
			if counted.Get(v) > 0 {
				return counted
			}
			return nil
		},
	}}
	ing := manyPaths("one", 2026, "/p-%d", 30)
	ing.Annotations = map[string]string{annotationPrefix + "counted": "x"}
	builder := build.New(features, strings.TrimSuffix(annotationPrefix, "/"))
	host, _, fs := builder.Host("a.example.com", newStore([]metav1.Object{ing}))
	if parsed != 1 || len(fs) != 1 {
		t.Errorf("parsed %d times, findings %v", parsed, fs)
	}
	for _, r := range host.Routes {
		if !r.Denied {
			t.Errorf("%s is not denied", r.Path)
		}
	}
}

// TestUnreadValuesDeny has a bad value that the feature never looks at: all paths
// of the Ingress are denied.
func TestUnreadValuesDeny(t *testing.T) {
	guard := feature.Setting[int]{Annotation: "guard", OnInvalid: feature.Deny, Parse: feature.Int(1, 9)}
	features := []feature.Feature{{Name: "guard", Settings: []feature.AnySetting{guard}}}
	ing := manyPaths("one", 2026, "/p-%d", 3)
	ing.Annotations = map[string]string{annotationPrefix + "guard": "x"}
	host, _, fs := build.New(features, strings.TrimSuffix(annotationPrefix, "/")).Host("a.example.com", newStore([]metav1.Object{ing}))
	for _, r := range host.Routes {
		if !r.Denied || len(fs) != 1 {
			t.Errorf("%s: denied %t, findings %v", r.Path, r.Denied, fs)
		}
	}
}

// manyPaths is an Ingress of that year with n paths on a.example.com.
func manyPaths(name string, year int, path string, n int) *networkingv1.Ingress {
	ing := ingressOf(0, 0)
	ing.Name, ing.CreationTimestamp.Time = name, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	ing.Annotations = map[string]string{annotationPrefix + "regex": "true"}
	ing.Spec.Rules[0].Host = "a.example.com"
	paths := ing.Spec.Rules[0].HTTP.Paths
	for i := range n {
		p := paths[0]
		p.Path = strings.ReplaceAll(path, "%d", fmt.Sprint(i))
		paths = append(paths, p)
	}
	ing.Spec.Rules[0].HTTP.Paths = paths[1:]
	return ing
}

// TestBytesOfExpressionsAreBounded gives a host expressions whose few bytes of
// text take many when they are compiled: the oldest Ingress's are served.
func TestBytesOfExpressionsAreBounded(t *testing.T) {
	s := newStore([]metav1.Object{
		manyPaths("huge", 2026, "/huge-%d(?:[abc][def]){190}", 100), manyPaths("usual", 2025, "/usual-%d/(v[0-9]+)/(.*)", 99), manyPaths("late", 2027, "/late-%d.", 1),
	})
	host, _, fs := newBuilder().Host("a.example.com", s)
	text := hostText(host)
	usual, huge := strings.Count(text, "pattern ^/usual-"), strings.Count(text, "pattern ^/huge-")
	if usual != 99 || huge < 2 || huge > 90 {
		t.Errorf("%d usual paths and %d of a huge expression are served", usual, huge)
	}
	for _, f := range fs {
		if f.Code != finding.TooMany || !strings.Contains(f.Object, "huge") && !strings.Contains(f.Object, "late") {
			t.Errorf("%+v", f)
		}
	}
	if len(fs) < 10 {
		t.Errorf("%d findings", len(fs))
	}
}

// TestExpressionsOfAHostAreBounded gives a host more of them than it may have.
// Plain text does not count, and the youngest Ingress loses.
func TestExpressionsOfAHostAreBounded(t *testing.T) {
	s := newStore([]metav1.Object{
		manyPaths("young", 2026, "/young-%d.", 100), manyPaths("old", 2025, "/old-%d.", 150), manyPaths("plain", 2027, "/plain-%d", 300),
	})
	host, _, fs := newBuilder().Host("a.example.com", s)
	text := hostText(host)
	for what, want := range map[string]int{"pattern ^/old-": 150, "pattern ^/young-": 50, "pattern ^/plain-": 300} {
		if got := strings.Count(text, what); got != want {
			t.Errorf("%d routes are %s", got, what)
		}
	}
	if strings.Contains(text, "/young-50.") || !strings.Contains(text, "/young-49.") {
		t.Error("not the last ones of the youngest were refused")
	}
	if len(fs) != 50 || fs[0].Object != "ingress/shop/young" || fs[0].Code != finding.TooMany || !strings.Contains(fs[0].Message, "200") {
		t.Errorf("findings %v", fs)
	}
}

// TestLongPathsOnPatternHosts holds plain text to the length of a pattern, which
// is what Lua may have to take it for.
func TestLongPathsOnPatternHosts(t *testing.T) {
	for length, want := range map[int]int{4094: 2, 4095: 2, 4096: 1, 60_000: 1} {
		ing := manyPaths("one", 2026, "/"+strings.Repeat("a", length-1), 1)
		host, _, fs := newBuilder().Host("a.example.com", newStore([]metav1.Object{ing}))
		if len(host.Routes) != want || len(fs) != 2-want {
			t.Errorf("%d bytes: %d routes, findings %.300s", length, len(host.Routes), fmt.Sprint(fs))
		}
	}
}
