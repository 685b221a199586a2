package build_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
)

// TestUnreachableDefaultBackend: findings about the Service of --default-backend-service name
// the flag, and what is answered instead.
func TestUnreachableDefaultBackend(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "page"}
	udp := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}}
	for want, service := range map[string]*corev1.Service{
		"service/shop/page metadata.name MissingObject: the Service does not exist, but --default-backend-service names it; requests that match no rule are answered 404": nil,
		"service/shop/page spec.ports MissingObject: the Service has no TCP port, but --default-backend-service names it; requests that match no rule are answered 404":   {ObjectMeta: meta, Spec: udp},
	} {
		builder := newBuilder()
		s := store.New(store.Settings{DefaultBackend: types.NamespacedName{Namespace: "shop", Name: "page"}}, builder.Refer)
		if service != nil {
			s.Apply(service, false)
		}
		_, found, findings := builder.Backend(model.BackendKey("shop", "page", model.FirstPort), s)
		if !found || len(findings) != 1 || findings[0].String() != want {
			t.Errorf("found %v, findings %v, want %s", found, findings, want)
		}
	}
}
