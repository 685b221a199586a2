package explain_test

import (
	"fmt"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/store"
)

// BenchmarkExplain explains a request among 10,000 Ingresses, of which some have
// 1,000 aliases that are expressions. The controller is blocked meanwhile.
func BenchmarkExplain(b *testing.B) {
	builder := build.New(all.Features(), prefix)
	s := store.New(store.Settings{Classless: true, IngressClass: "nginx"}, builder.Refer)
	for i := range 10_000 {
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)}}
		for p := range 5 {
			ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{
				Host: fmt.Sprintf("h%d.test", i),
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: fmt.Sprint("/p", p), Backend: networkingv1.IngressBackend{
						Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
					},
				}}}},
			})
		}
		if i < 125 {
			aliases := "*.a.test"
			for n := range 8 {
				aliases += fmt.Sprintf(",~^i%d-x%d$", i, n)
			}
			ing.Annotations = map[string]string{prefix + "/server-alias": aliases}
		}
		s.Apply(ing, false)
	}
	for b.Loop() {
		e, err := explain.Explain(explain.Query{URL: "http://h7.test/p3/x"}, explain.Settings{
			Store: s, Builder: builder, Features: all.Features(), HTTPSPort: 443, Now: time.Unix(1, 0),
		})
		if err != nil || e.Route == nil {
			b.Fatal(e, err)
		}
	}
}
