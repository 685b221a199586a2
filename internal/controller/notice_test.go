package controller

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
)

// TestNoticeServed: each Ingress that was added or changed is reported, if it is
// served, and nothing else is.
func TestNoticeServed(t *testing.T) {
	c := updater(t, Subscriptions{})
	var taken []string
	c.settings.Served = func(name types.NamespacedName) { taken = append(taken, name.String()) }
	status := withSecret("web", "tls")
	status.Object.(*networkingv1.Ingress).Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	foreign := withSecret("foreign", "")
	class := "other"
	foreign.Object.(*networkingv1.Ingress).Spec.IngressClassName = &class
	for _, step := range []struct {
		about  string
		change source.Change
		want   []string
	}{
		{"a new one", withSecret("web", "tls"), []string{"shop/web"}},
		{"its status", status, nil},
		{"a change", withSecret("web", "other"), []string{"shop/web"}},
		{"a Service", externalName("a.test"), nil},
		{"a foreign one", foreign, nil},
		{"its class", source.Change{Object: &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}, nil},
		{"its end", source.Change{Object: withSecret("web", "other").Object, Deleted: true}, nil},
	} {
		taken = nil
		c.update(t.Context(), []source.Change{step.change})
		if !slices.Equal(taken, step.want) {
			t.Errorf("%s: reported were %v, want %v", step.about, taken, step.want)
		}
	}
}
