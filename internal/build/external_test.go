package build_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
)

// Where Services of type ExternalName are switched off, they have no endpoints
// even if their addresses are known.
func TestExternalNamesOff(t *testing.T) {
	const key = "shop/x/80"
	for _, off := range []bool{false, true} {
		builder := newBuilder()
		s := store.New(store.Settings{IngressClass: "nginx", Classless: true, NoExternalNames: off}, builder.Refer)
		known := testAddresses{Name: "x.net", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}.object()
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "x"}
		for _, o := range []metav1.Object{
			known, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x.net"}},
			&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "x", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}},
		} {
			s.Apply(o, false)
		}
		backend, found, findings := builder.Backend(key, s)
		if !found || len(backend.Endpoints) > 0 == off {
			t.Errorf("off %v: found %v, endpoints %v", off, found, backend.Endpoints)
		}
		reported := len(findings) == 1 && findings[0].Code == finding.NotSupported && findings[0].Field == "spec.type"
		if reported != off || len(findings) > 1 {
			t.Errorf("off %v: findings %v", off, findings)
		}
	}
}
