package all_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// of moves an Ingress to a namespace and makes it that old.
func of(namespace string, year int, ing *networkingv1.Ingress) *networkingv1.Ingress {
	ing.Namespace = namespace
	ing.CreationTimestamp.Time = ing.CreationTimestamp.AddDate(year, 0, 0)
	return ing
}

func annotated(ing *networkingv1.Ingress, pairs ...string) *networkingv1.Ingress {
	ing.Annotations = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		ing.Annotations[prefix+"/"+pairs[i]] = pairs[i+1]
	}
	return ing
}

func withTLS(ing *networkingv1.Ingress, hosts ...string) *networkingv1.Ingress {
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: "tls"}}
	return ing
}

// owned are the Ingresses of the namespace owner: each sort of name that a host can have.
func owned() []metav1.Object {
	exact := ingress("exact", nil, "a.test /api own")
	kind := networkingv1.PathTypeExact
	exact.Spec.Rules[0].HTTP.Paths[0].PathType = &kind
	return []metav1.Object{
		of("owner", 2020, annotated(ingress("web", nil, "a.test /own own"), "server-alias", `alias.test, *.many.test, first.*, ~^rx\d+\.net$`)),
		of("owner", 2021, exact),
		of("owner", 2021, withTLS(ingress("wild", nil, "*.corp.test / own"), "*.corp.test")),
		of("owner", 2021, annotated(ingress("www", nil, "www.r.test / own"), "from-to-www-redirect", "true")),
		of("owner", 2021, ingress("bare", nil, "login.other.test / own")),
		of("owner", 2021, ingress("default", nil, " / own")),
	}
}

// touched are the names by which the other namespace tries to touch the owner's. All but
// the last are the owner's.
var touched = []string{
	"a.test", "alias.test", "*.many.test", "first.*", `~^rx\d+\.net$`, "*.corp.test", "login.corp.test", "www.r.test", "r.test",
	"login.other.test", "", "*.other.test",
}

// An attack is a way to touch a name. Ingresses is nil where the way does not fit the name.
type attack struct {
	way       string
	ingresses func(name string) *networkingv1.Ingress
}

func attacks() []attack {
	isHost := func(name string) bool { _, ok := spec.HostName(name); return ok }
	rule := func(path string, change func(*networkingv1.Ingress, string)) func(string) *networkingv1.Ingress {
		return func(name string) *networkingv1.Ingress {
			if !isHost(name) {
				return nil
			}
			ing := of("other", 2024, ingress("intruder", nil, name+" "+path+" theirs", "mine.net / theirs"))
			if change != nil {
				change(ing, name)
			}
			return ing
		}
	}
	set := func(pairs ...string) func(*networkingv1.Ingress, string) {
		return func(ing *networkingv1.Ingress, _ string) { annotated(ing, pairs...) }
	}
	alias := func(text func(name string) string) func(string) *networkingv1.Ingress {
		return func(name string) *networkingv1.Ingress {
			if text(name) == "" {
				return nil
			}
			return of("other", 2024, annotated(ingress("intruder", nil, "0.net / theirs"), "server-alias", text(name)))
		}
	}
	return []attack{
		{"path", rule("/zzz", nil)},
		{"www alias", rule("/own", nil)},
		{"root", rule("/", nil)},
		{"exact", rule("/own/deeper", func(ing *networkingv1.Ingress, _ string) {
			kind := networkingv1.PathTypeExact
			ing.Spec.Rules[0].HTTP.Paths[0].PathType = &kind
		})},
		{"regex", rule("/(.*)()()()()", set("use-regex", "true"))},
		{"use-regex", rule("/zzz", set("use-regex", "true"))},
		{"rewrite", rule("/zzz", set("rewrite-target", "/x"))},
		{"canary", rule("/", set("canary", "true", "canary-weight", "100"))},
		{"canary of a path", rule("/own", set("canary", "true", "canary-weight", "100"))},
		{"default backend", rule("/zzz", func(ing *networkingv1.Ingress, _ string) {
			ing.Spec.DefaultBackend = &ing.Spec.Rules[0].HTTP.Paths[0].Backend
		})},
		{"only a default backend", func(name string) *networkingv1.Ingress {
			if name != "" {
				return nil
			}
			ing := of("other", 2024, ingress("intruder", nil, " / theirs"))
			ing.Spec.DefaultBackend, ing.Spec.Rules = &ing.Spec.Rules[0].HTTP.Paths[0].Backend, nil
			return ing
		}},
		{"TLS section", rule("/zzz", func(ing *networkingv1.Ingress, name string) { withTLS(ing, name) })},
		{"TLS section without hosts", rule("/zzz", func(ing *networkingv1.Ingress, _ string) { withTLS(ing) })},
		{"ciphers", rule("/zzz", set("ssl-ciphers", "AES256-SHA"))},
		{"app-root", rule("/", set("app-root", "/theirs"))},
		{"www redirect", rule("/zzz", set("from-to-www-redirect", "true"))},
		{"aliases of its host", rule("/zzz", set("server-alias", "alias.test, new.net"))},
		{"call of its host", rule("/zzz", set("auth-url", "http://$host/nowhere"))},
		{"alias", alias(func(name string) string { return name })},
		{"alias that is an expression", alias(func(name string) string {
			if name == `~^rx\d+\.net$` {
				return "~^rx.*"
			}
			return ""
		})},
	}
}

// questions are requests for the owner's names.
var questions = []string{
	"a.test", "alias.test", "x.many.test", "first.org", "rx1.net", "login.corp.test", "x.corp.test", "www.r.test", "r.test", "www.a.test",
	"login.other.test", "free.org", "_",
}

// A cluster is what is built of Ingresses.
type cluster struct {
	units    map[unit.Key]string
	findings []finding.Finding
}

// weaken may replace the View by a weaker one.
func buildWorld(t testing.TB, mode string, weaken func(v build.View, shared *store.Store) build.View, objects ...metav1.Object) cluster {
	t.Helper()
	builder := build.New(all.Features(), prefix)
	fill := func(mode string) *store.Store {
		s := store.New(store.Settings{
			Classless: true, IngressClass: "nginx", ConfigMap: types.NamespacedName{Namespace: "default", Name: "headgate"},
		}, builder.Refer)
		s.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "headgate"}, Data: map[string]string{"host-ownership": mode}}, false)
		for _, object := range objects {
			s.Apply(object, false)
		}
		return s
	}
	s := fill(mode)
	var view build.View = s
	if weaken != nil {
		view = weaken(s, fill("shared"))
	}
	w := cluster{units: map[unit.Key]string{}}
	packed := map[unit.Key]unit.Unit{}
	for _, key := range s.All() {
		built, fs := builder.Unit(key, view)
		w.findings = append(w.findings, fs...)
		if u, ok := built.Pack(); ok {
			packed[u.Key], w.units[u.Key] = u, string(u.Payload)
		}
	}
	// All aliases for more than one name are in one unit, with those of others: answers
	// show whether it is the same for the owner.
	delete(w.units, unit.PatternsKey)
	r := router.New(router.Settings{Lookup: func(key unit.Key) (unit.Unit, bool) { u, ok := packed[key]; return u, ok }})
	for _, host := range questions {
		for _, path := range []string{"/", "/own", "/OWN", "/own/deeper", "/api", "/api/x", "/zzz"} {
			d := r.Route(host, path)
			answer := fmt.Sprintf("%d %s %s", d.Status, d.Page, d.Name.Host)
			if d.Route != nil {
				answer += fmt.Sprintf(" %s %v", d.Route.Backend, d.Route.Origin)
			}
			certificate, secured := r.Certificate(host)
			w.units[unit.Key{Kind: "answer", Name: host + path}] = fmt.Sprintf("%s %v %s %s", answer, secured, certificate.Name.Name, certificate.Certificate)
		}
	}
	return w
}

// changed are the units and answers of a cluster that are others in another one.
func (w cluster) changed(other cluster) (list []string) {
	for key, text := range w.units {
		if other.units[key] != text {
			list = append(list, key.String())
		}
	}
	slices.Sort(list)
	return list
}

func (w cluster) has(object string, code finding.Code) bool {
	return slices.ContainsFunc(w.findings, func(f finding.Finding) bool { return strings.HasPrefix(f.Object, object) && f.Code == code })
}

func secretsOf(t testing.TB) []metav1.Object {
	t.Helper()
	var list []metav1.Object
	for _, namespace := range []string{"owner", "other"} {
		pair := headgatetest.NewKeyPair(t, namespace, "*.corp.test", "*.other.test", "a.test", "login.other.test")
		for _, object := range headgatetest.Decode(t, headgatetest.TLSSecret("tls", pair)) {
			object.SetNamespace(namespace)
			list = append(list, object)
		}
	}
	return list
}

// TestNamespacesKeepTheirHosts touches each name of a namespace in each way from another
// one. While names belong to namespaces, the owner's units and answers are those that it
// has alone, and both sides have a finding. While they don't, each way changes something:
// so the test can fail. It fails too if the check is left out in one place.
func TestNamespacesKeepTheirHosts(t *testing.T) {
	t.Parallel()
	base := append(secretsOf(t), owned()...)
	alone := buildWorld(t, "namespace", nil, base...)
	aloneShared := buildWorld(t, "shared", nil, base...)
	if alone.has("ingress/", finding.HostOwned) || aloneShared.has("ingress/", finding.HostShared) {
		t.Errorf("alone there are findings: %v %v", alone.findings, aloneShared.findings)
	}
	mutations := map[string]func(v build.View, shared *store.Store) build.View{
		"rules":            func(v build.View, s *store.Store) build.View { return openRules{v, s} },
		"canaries":         func(v build.View, s *store.Store) build.View { return openCanaries{v, s} },
		"aliases":          func(v build.View, s *store.Store) build.View { return openAliases{v, s} },
		"redirect aliases": func(v build.View, s *store.Store) build.View { return openRedirects{v, s} },
		"certificates":     func(v build.View, _ *store.Store) build.View { return openCertificates{v} },
	}
	caught := map[string]bool{}
	for _, a := range attacks() {
		effective := false
		for _, name := range touched {
			intruder := a.ingresses(name)
			if intruder == nil {
				continue
			}
			objects := append(slices.Clone(base), intruder)
			now := buildWorld(t, "namespace", nil, objects...)
			if changed := alone.changed(now); len(changed) > 0 {
				t.Errorf("%s of %q changes %v", a.way, name, changed)
			}
			// No Ingress has *.other.test before, and a new expression may have new names.
			if name != "*.other.test" && a.way != "alias that is an expression" && (!now.has("ingress/other/intruder", finding.HostOwned) || !now.has("ingress/owner/", finding.HostOwned)) {
				t.Errorf("%s of %q: not on both sides: %v", a.way, name, now.findings)
			}
			effective = effective || len(aloneShared.changed(buildWorld(t, "shared", nil, objects...))) > 0
			for mutation, weaken := range mutations {
				if !caught[mutation] && len(alone.changed(buildWorld(t, "namespace", weaken, objects...))) > 0 {
					caught[mutation] = true
				}
			}
		}
		if !effective {
			t.Errorf("%s changes nothing in shared hosts either", a.way)
		}
	}
	for mutation := range mutations {
		if !caught[mutation] {
			t.Errorf("nothing shows that the check of %s is missing", mutation)
		}
	}
	if len(caught) != len(mutations) {
		t.Logf("caught: %v", slices.Sorted(maps.Keys(caught)))
	}
}

// These Views forget who is refused in one place.
type (
	openRules struct {
		build.View
		shared *store.Store
	}
	openCanaries struct {
		build.View
		shared *store.Store
	}
	openAliases struct {
		build.View
		shared *store.Store
	}
	openRedirects struct {
		build.View
		shared *store.Store
	}
	openCertificates struct{ build.View }
)

func (v openRules) Ingresses(host string) []*networkingv1.Ingress   { return v.shared.Ingresses(host) }
func (v openCanaries) Canaries(host string) []*networkingv1.Ingress { return v.shared.Canaries(host) }
func (v openAliases) Claimants(alias string) []*networkingv1.Ingress {
	return v.shared.Claimants(alias)
}

func (v openRedirects) RedirectAliases(name string) []*networkingv1.Ingress {
	return v.shared.RedirectAliases(name)
}

func (v openCertificates) Owner(name string) spec.Owner {
	owner := v.View.Owner(name)
	if owner.Ingress != nil {
		ing := *owner.Ingress
		ing.Namespace = "owner"
		owner.Ingress = &ing
	}
	return owner
}

// TestSharedHosts: who is listed may add to a host, and passes on nothing; the next
// oldest owns a host whose owner is gone; a host is not taken by a younger wildcard.
func TestSharedHosts(t *testing.T) {
	t.Parallel()
	secrets := secretsOf(t)
	intruder := of("other", 2024, ingress("intruder", nil, "a.test /zzz theirs"))
	has := func(w cluster, backend string) bool {
		return strings.Contains(w.units[unit.Host.Key("a.test")], backend)
	}
	listed := of("owner", 2020, annotated(ingress("web", nil, "a.test / own"), "host-shared-with", "third, other"))
	if w := buildWorld(t, "namespace", nil, listed, intruder); !has(w, "other/theirs/80") || !has(w, "owner/own/80") || w.has("ingress/", finding.HostOwned) {
		t.Errorf("a listed namespace is refused: %v", w)
	}
	if w := buildWorld(t, "shared", nil, listed, intruder); w.has("ingress/", finding.HostShared) {
		t.Errorf("a listed namespace has findings: %v", w.findings)
	}
	asks := of("other", 2024, annotated(ingress("intruder", nil, "a.test /zzz theirs"), "host-shared-with", "other, owner"))
	owner := of("owner", 2020, ingress("web", nil, "a.test / own"))
	if w := buildWorld(t, "namespace", nil, owner, asks); has(w, "other/theirs/80") {
		t.Error("who does not own a host shares it")
	}
	if w := buildWorld(t, "namespace", nil, asks); !has(w, "other/theirs/80") {
		t.Error("the next oldest does not get the host")
	}
	// Sharing a wildcard does not share what the owner has below it.
	wild := of("owner", 2020, annotated(withTLS(ingress("wild", nil, "*.corp.test / own"), "*.corp.test"), "host-shared-with", "other"))
	admin := of("owner", 2021, ingress("admin", nil, "a.corp.test / own"))
	below := of("other", 2022, ingress("below", nil, "a.corp.test /b theirs", "b.corp.test / theirs"))
	w := buildWorld(t, "namespace", nil, append(slices.Clone(secrets), wild, admin, below)...)
	if text := w.units[unit.Host.Key("a.corp.test")]; strings.Contains(text, "theirs") {
		t.Errorf("a.corp.test is shared: %s", text)
	}
	if text := w.units[unit.Host.Key("b.corp.test")]; !strings.Contains(text, "theirs") {
		t.Errorf("b.corp.test is not shared: %v", w.findings)
	}
	if text := w.units[unit.Name.Key("b.corp.test")]; !strings.Contains(text, `"owner":"owner"`) {
		t.Errorf("b.corp.test has another owner: %s", text)
	}
}

// TestSharedHostsAreReported: while names belong to no namespace, both sides are reported of
// what one does to the other.
func TestSharedHostsAreReported(t *testing.T) {
	t.Parallel()
	base := append(secretsOf(t), owned()...)
	for what, intruder := range map[string]*networkingv1.Ingress{
		"takes requests":                      of("other", 2024, ingress("intruder", nil, "a.test /zzz theirs")),
		"is a canary":                         of("other", 2024, annotated(ingress("intruder", nil, "a.test /own theirs"), "canary", "true", "canary-weight", "100")),
		"regular expressions":                 of("other", 2024, annotated(ingress("intruder", nil, "a.test /zzz theirs"), "use-regex", "true")),
		"with the certificate of *.corp.test": of("other", 2024, ingress("intruder", nil, "login.corp.test / theirs")),
		"serves the name pay.corp.test":       of("other", 2024, annotated(ingress("intruder", nil, "0.net / theirs"), "server-alias", "pay.corp.test")),
	} {
		w := buildWorld(t, "shared", nil, append(slices.Clone(base), intruder)...)
		sides := map[string]bool{}
		for _, f := range w.findings {
			if f.Code == finding.HostShared && strings.Contains(f.Message, what) {
				sides[strings.Split(f.Object, "/")[1]] = true
			}
		}
		if !sides["owner"] || !sides["other"] {
			t.Errorf("%s: reported to %v: %v", what, sides, w.findings)
		}
	}
}

// TestMistypedOwnership: a typo in the key refuses, and a finding says so.
func TestMistypedOwnership(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, "namespaced", nil,
		of("owner", 2020, ingress("web", nil, "a.test / own")), of("other", 2024, ingress("intruder", nil, "a.test /zzz theirs")))
	if !w.has("ingress/other/intruder", finding.HostOwned) || !w.has("configmap/default/headgate", finding.InvalidValue) {
		t.Errorf("%v", w.findings)
	}
}
