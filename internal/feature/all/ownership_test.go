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
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

const prefix = "nginx.ingress.kubernetes.io"

// values are tried on every annotation: what some of them take, and what none
// should.
var values = []string{
	"true", "false", "1", "10", "5m", "8k", "off", "other", "10.0.0.0/8", "https://other.test/x", "default/other",
	"mine.other.test, *.other.net, ~^mine", "neighbour.test", "", "{", "a\r\nb",
	"*.test, *.wild.test, neighbour.*, ~.*, neighbour.test, mine.test", "~^(?:[^x]|[^y]|[^z])+[XY]$",
}

// asked are names with paths that are not for default/mine to answer.
var asked = [][2]string{
	{"mine.test", "/sibling"}, {"mine.test", "/sibling/shared"}, {"neighbour.test", "/"}, {"neighbour.test", "/shared"},
	{"a.wild.test", "/"}, {"_", "/path"}, {"_", "/healthz"}, {"10.0.0.17", "/healthz"}, {"10.0.0.17", "/path"}, {"[::1]", "/path"},
}

// wholeHost are the annotations that mean something for other Ingresses'
// routes of the same host, and wholeBackend those for other Ingresses' requests
// to the same Service port: see docs/differences.md for whose counts. A canary
// makes no routes: "/" of its host then falls to the next Ingress.
var (
	wholeHost = []string{
		"use-regex", "rewrite-target", "app-root", "canary", "auth-tls-secret", "auth-tls-verify-client", "auth-tls-verify-depth", "auth-tls-match-cn",
		"auth-tls-error-page", "auth-tls-pass-certificate-to-upstream", "server-snippet",
	}
	wholeBackend = []string{
		"service-upstream", "load-balance", "upstream-hash-by", "upstream-hash-by-subset", "upstream-hash-by-subset-size", "slow-start",
		"affinity", "affinity-mode", "session-cookie-name", "session-cookie-change-on-failure",
		"ejection", "ejection-failures", "ejection-statuses", "ejection-time", "ejection-max-share", "retry-budget",
	}
)

// TestAnnotationsStayAtHome gives one Ingress each annotation with each value,
// and looks at what that changes: nothing of another host, no route that
// another Ingress has on the same host, no backend that only others use, and
// not who answers for what others have.
func TestAnnotationsStayAtHome(t *testing.T) {
	before := builtWith(t, nil).parts
	annotations := 0
	for _, f := range all.Features() {
		for _, s := range f.Settings {
			name := s.Spec().Annotation
			if name == "" {
				continue
			}
			annotations++
			for _, value := range values {
				after := builtWith(t, map[string]string{name: value}).parts
				for _, changed := range difference(before, after) {
					// What is new belongs to no other Ingress. What it takes from others is seen in the answers.
					if before[changed] != "" && !mayChange(name, changed) {
						t.Errorf("%s: %q on default/mine changes %s from\n%s\nto\n%s", name, value, changed, before[changed], after[changed])
					}
				}
			}
		}
	}
	if annotations < 10 {
		t.Errorf("%d annotations were tried", annotations)
	}
}

// mayChange reports whether an annotation of the Ingress default/mine may change
// a thing.
func mayChange(annotation, thing string) bool {
	switch {
	case strings.HasPrefix(thing, "mine's "):
		return true
	case thing == "backend default/shared/80":
		return slices.Contains(wholeBackend, annotation)
	case thing == "default/sibling's routes of host mine.test":
		return slices.Contains(wholeHost, annotation)
	}
	return false
}

// An output is everything that is built from the test's objects.
type output struct {
	// parts are units and answers, by whose they are.
	parts    map[string]string
	findings []finding.Finding
	// conf is nginx.conf.
	conf string
	// denied is whether a route of default/mine answers 503 as its annotations
	// ask for.
	denied bool

	units map[unit.Key]unit.Unit
}

// builtWith is what is built where the Ingress default/mine, which is the
// oldest, has the annotations, by their names without the prefix. default/mine-too
// has one of its paths when it is a canary. ConfigMap default/headgate holds the
// options.
func builtWith(t testing.TB, annotations map[string]string, objects ...metav1.Object) *output {
	t.Helper()
	features := all.Features()
	builder := build.New(features, prefix)
	s := store.New(store.Settings{
		Classless: true, IngressClass: "nginx", ConfigMap: types.NamespacedName{Namespace: "default", Name: "headgate"},
	}, builder.Refer)
	whole := map[string]string{}
	for name, value := range annotations {
		whole[prefix+"/"+name] = value
	}
	for i, ing := range []*networkingv1.Ingress{
		ingress("mine", whole, "mine.test /mine own", "mine.test /mine/shared shared"),
		ingress("sibling", nil, "mine.test /sibling siblings", "mine.test /sibling/shared shared"),
		ingress("neighbour", nil, "neighbour.test / neighbours", "neighbour.test /shared shared", "*.wild.test / neighbours"),
		ingress("hostless", nil, " /path neighbours"),
		ingress("mine-too", nil, "mine.test /mine siblings"),
	} {
		ing.CreationTimestamp.Time = ing.CreationTimestamp.AddDate(2026, 0, i)
		s.Apply(ing, false)
	}
	for i, name := range []string{"own", "shared", "siblings", "neighbours"} {
		s.Apply(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.0.0.%d", i+1), Ports: []corev1.ServicePort{{Port: 80}}},
		}, false)
	}
	for _, object := range objects {
		s.Apply(object, false)
	}
	w := &output{parts: map[string]string{}, units: map[unit.Key]unit.Unit{}}
	desired := plan.NewDesired(nil)
	for _, key := range s.All() {
		w.add(builder, s, key, desired)
	}
	w.findings = finding.Sort(w.findings)
	addAnswers(w.parts, w.units)
	static, _, err := desired.Next(nginxconf.Environment{Resources: feature.Resources(features), Directives: feature.Directives(features)}, plan.Static{Dictionaries: nginxconf.FirstDictionaries(0, 0)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.conf = string(static.Files[nginxconf.File])
	return w
}

// addAnswers adds which route answers each request of asked, and with which certificate.
func addAnswers(parts map[string]string, units map[unit.Key]unit.Unit) {
	r := router.New(router.Settings{
		Lookup:     func(key unit.Key) (unit.Unit, bool) { u, ok := units[key]; return u, ok },
		HealthPath: "/healthz",
	})
	for _, q := range asked {
		d := r.Route(q[0], q[1])
		answer := fmt.Sprintf("%d %s %s %v", d.Status, d.Page, d.Name.Name.Name, d.Err)
		if d.Route != nil {
			answer += fmt.Sprintf(" %s %v", d.Route.Backend, d.Route.Origin)
		}
		certificate, _ := r.Certificate(q[0])
		parts["answer to "+q[0]+q[1]] = answer + " " + certificate.Name.Name
	}
}

func (w *output) add(b *build.Builder, s *store.Store, key unit.Key, desired *plan.Desired) {
	built, fs := b.Unit(key, s)
	w.findings = append(w.findings, fs...)
	desired.Set(built)
	u, ok := built.Pack()
	if !ok {
		return
	}
	w.units[u.Key] = u
	if h, ok := built.Model.(model.Host); ok {
		w.addHost(h)
		return
	}
	name := fmt.Sprintf("%s %s", u.Kind, u.Name)
	if strings.Contains(u.Name, "default/own/") || u.Kind == unit.Name && u.Name == "mine.test" {
		name = "mine's " + name
	}
	w.parts[name] = string(u.Payload)
}

// addHost adds a host's routes by their Ingresses.
func (w *output) addHost(h model.Host) {
	byOrigin := map[string]model.Host{}
	for _, r := range h.Routes {
		w.denied = w.denied || r.Denied && r.Origin.Ingress == "mine"
		owner := r.Origin.Namespace + "/" + r.Origin.Ingress
		byOrigin[owner] = model.Host{Name: h.Name, Routes: append(byOrigin[owner].Routes, r)}
	}
	for owner, part := range byOrigin {
		name := fmt.Sprintf("%s's routes of host %s", owner, h.Name)
		if strings.HasPrefix(owner, "default/mine") {
			name = "mine's routes of host " + h.Name + " by " + owner
		}
		w.parts[name] = string(unit.FromHost(part).Payload)
	}
	name := "handshakes of host " + h.Name
	if h.Name == "mine.test" {
		name = "mine's " + name
	}
	w.parts[name] = string(unit.FromHost(model.Host{Name: h.Name, TLS: h.TLS}).Payload)
}

// ingress makes an Ingress of the namespace default whose routes read "host
// path service".
func ingress(name string, annotations map[string]string, routes ...string) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations}}
	kind := networkingv1.PathTypePrefix
	for _, route := range routes {
		part := strings.Split(route, " ")
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{
			Host: part[0],
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: part[1], PathType: &kind, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: part[2], Port: networkingv1.ServiceBackendPort{Number: 80}},
				},
			}}}},
		})
	}
	return ing
}

func difference(before, after map[string]string) []string {
	keys := map[string]bool{}
	for key := range before {
		keys[key] = before[key] != after[key]
	}
	for key := range after {
		keys[key] = before[key] != after[key]
	}
	maps.DeleteFunc(keys, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(keys))
}
