package router_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
)

const annotationPrefix = "nginx.ingress.kubernetes.io"

// build makes units of Ingresses, as the controller does.
func (w *clusterFixture) build() {
	b := build.New(all.Features(), annotationPrefix)
	s := store.New(store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true}, b.Refer)
	for i := range 1 + w.IntN(5) {
		s.Apply(w.ingress(fmt.Sprint("i", i)), false)
	}
	for _, key := range s.All() {
		built, _ := b.Unit(key, s)
		switch m := built.Model.(type) {
		case model.Name:
			w.names = append(w.names, m.Name)
		case model.NamePatterns:
			for _, n := range slices.Concat(m.LeadingWildcards, m.TrailingWildcards, m.Regexes) {
				w.names = append(w.names, n.Name)
			}
		case model.Host:
		default:
			continue
		}
		if u, ok := built.Pack(); ok {
			w.units = append(w.units, u)
		}
	}
}

func (w *clusterFixture) ingress(name string) *networkingv1.Ingress {
	annotations := map[string]string{
		// The size distinguishes the Ingresses: each has its own profile.
		annotationPrefix + "/proxy-buffer-size": fmt.Sprintf("%dk", 4+4*w.IntN(8)),
	}
	if w.chance(3) {
		annotations[annotationPrefix+"/use-regex"] = "true"
	}
	if w.chance(4) {
		annotations[annotationPrefix+"/default-backend"] = "c"
	}
	if w.chance(2) {
		var aliases []string
		for range 1 + w.IntN(3) {
			aliases = append(aliases, pick(w, w.name(), w.name(), "*."+w.name(), w.name()+".*", "~"+w.regex(pick(w, "^", "", "a"))))
		}
		annotations[annotationPrefix+"/server-alias"] = strings.Join(aliases, ",")
	}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: annotations, CreationTimestamp: metav1.NewTime(time.Unix(w.Int64N(3), 0)),
	}}
	for range w.IntN(4) {
		ing.Spec.Rules = append(ing.Spec.Rules, w.rule())
	}
	if w.chance(4) {
		ing.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: w.service()}
	}
	if w.chance(3) && len(w.names) > 0 {
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{pick(w, w.names...)}}}
	}
	return ing
}

func (w *clusterFixture) rule() networkingv1.IngressRule {
	rule := networkingv1.IngressRule{
		Host:             pick(w, "a.b", "b.a.b", "*.b", "*.a.b", "x1", ""),
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{}},
	}
	if rule.Host != "" {
		w.names = append(w.names, rule.Host)
	}
	for range 1 + w.IntN(4) {
		path := w.path()
		if w.chance(3) {
			path = strings.TrimPrefix(w.regex("^/"), "^")
		}
		kind := pick(w, networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
			Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{Service: w.service()},
		})
	}
	return rule
}

func (w *clusterFixture) service() *networkingv1.IngressServiceBackend {
	return &networkingv1.IngressServiceBackend{
		Name: pick(w, "a", "b", "c", "d"), Port: networkingv1.ServiceBackendPort{Number: 80 + w.Int32N(20)},
	}
}
