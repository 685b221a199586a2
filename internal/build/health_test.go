package build_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
)

// TestChecksThatAreNotAllowed: a check goes where requests may go, also if it is at another
// port.
func TestChecksThatAreNotAllowed(t *testing.T) {
	for port, want := range map[uint16]string{
		0: "[10.0.0.5:80 10.0.0.9:80]", 9: "[10.0.0.5:80 10.0.0.9:80]", 8081: "[10.0.0.9:80]",
	} {
		checking := feature.Feature{Name: "checking", Backend: func(_ feature.Values, out *feature.BackendOut) {
			out.Balancing.Check = model.HealthCheck{Target: "/", Port: port}
		}}
		builder := build.New([]feature.Feature{caller(), checking}, "p")
		s := store.New(store.Settings{
			IngressClass: "nginx", Classless: true, Listeners: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.5:8081")},
		}, builder.Refer)
		local, first, second := slice("shop", "web", "127.0.0.1"), slice("shop", "web", "10.0.0.5"), slice("shop", "web", "10.0.0.9")
		local.Name, first.Name, second.Name = "local", "first", "second"
		for _, o := range []metav1.Object{
			callingIngress("a", "a.example", "/", "web.shop.svc"),
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			local, first, second,
		} {
			s.Apply(o, false)
		}
		backend, found, _ := builder.Backend("shop/web/80", s)
		if got := fmt.Sprint(backend.Health.Checked); !found || got != want {
			t.Errorf("at port %d %s is checked, want %s (endpoints %v)", port, got, want, backend.Endpoints)
		}
	}
}
