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

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
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
// to the same Service port: see docs/differences.md for whose counts.
var (
	wholeHost    = []string{"use-regex"}
	wholeBackend = []string{"service-upstream"}
)

// TestAnnotationsStayAtHome gives one Ingress each annotation with each value,
// and looks at what that changes: nothing of another host, no route that
// another Ingress has on the same host, no backend that only others use, and
// not who answers for what others have.
func TestAnnotationsStayAtHome(t *testing.T) {
	before := builtWith(nil)
	annotations := 0
	for _, f := range all.Features() {
		for _, s := range f.Settings {
			name := s.Declaration().Annotation
			if name == "" {
				continue
			}
			annotations++
			for _, value := range values {
				after := builtWith(map[string]string{prefix + "/" + name: value})
				for _, changed := range difference(before, after) {
					// What was not there belongs to nobody else. What it takes from others the answers tell.
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

// mayChange tells whether an annotation of the Ingress default/mine may change
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

// builtWith is everything that is built, in parts by whose they are, where the
// Ingress default/mine, which is the oldest, has the annotations.
func builtWith(annotations map[string]string) map[string]string {
	builder := build.New(all.Features(), prefix)
	s := store.New(store.Settings{Classless: true, IngressClass: "nginx"}, builder.Refer)
	for i, ing := range []*networkingv1.Ingress{
		ingress("mine", annotations, "mine.test /mine own", "mine.test /mine/shared shared"),
		ingress("sibling", nil, "mine.test /sibling siblings", "mine.test /sibling/shared shared"),
		ingress("neighbour", nil, "neighbour.test / neighbours", "neighbour.test /shared shared", "*.wild.test / neighbours"),
		ingress("nobody", nil, " /path neighbours"),
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
	parts, units := map[string]string{}, map[unit.Key]unit.Unit{}
	for _, key := range s.All() {
		addParts(parts, units, builder, s, key)
	}
	addAnswers(parts, units)
	return parts
}

// addAnswers tells who answers what is asked, and with whose certificate.
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

func addParts(parts map[string]string, units map[unit.Key]unit.Unit, b *build.Builder, s *store.Store, key store.Key) {
	put := func(u unit.Unit, found bool) {
		name := fmt.Sprintf("%s %s", u.Kind, u.Name)
		if strings.Contains(u.Name, "default/own/") || u.Kind == unit.Name && u.Name == "mine.test" {
			name = "mine's " + name
		}
		if found {
			parts[name], units[u.Key] = string(u.Payload), u
		}
	}
	switch key.Kind {
	case store.GlobalsUnit:
		g, _ := b.Globals(s)
		put(unit.FromGlobals(g), true)
	case store.HostUnit:
		h, _, _ := b.Host(key.Name, s)
		whole := unit.FromHost(h)
		units[whole.Key] = whole
		byOrigin := map[string]model.Host{}
		for _, r := range h.Routes {
			owner := r.Origin.Namespace + "/" + r.Origin.Ingress
			byOrigin[owner] = model.Host{Name: h.Name, Routes: append(byOrigin[owner].Routes, r)}
		}
		for owner, part := range byOrigin {
			name := fmt.Sprintf("%s's routes of host %s", strings.TrimPrefix(owner, "default/mine"), h.Name)
			if owner == "default/mine" {
				name = "mine's routes of host " + h.Name
			}
			parts[name] = string(unit.FromHost(part).Payload)
		}
	case store.NameUnit:
		n, _, found, _ := b.Name(key.Name, s)
		put(unit.FromName(n), found)
	case store.NamePatternsUnit:
		p, _, found, _ := b.NamePatterns(s)
		put(unit.FromNamePatterns(p), found)
	case store.BackendUnit:
		be, found, _ := b.Backend(key.Name, s)
		put(unit.FromBackend(be), found)
	}
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
