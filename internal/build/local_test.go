package build_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
)

// Who may write EndpointSlices must not reach with Headgate what the machine, a
// metadata service or Headgate itself serves.
func TestEndpointsThatAreNotAllowed(t *testing.T) {
	builder := build.New([]feature.Feature{caller()}, "p")
	listener := netip.MustParseAddrPort("10.0.0.5:80")
	for _, local := range []bool{false, true} {
		for _, address := range []string{
			"127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "224.0.0.1",
			"fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "100.100.100.200", "192.0.0.192", listener.Addr().String(),
		} {
			s := store.New(store.Settings{
				IngressClass: "nginx", Classless: true, LocalAddresses: local, Listeners: []netip.AddrPort{listener},
			}, builder.Refer)
			bad := slice("shop", "web", address)
			bad.Name = "bad"
			for _, o := range []metav1.Object{
				callingIngress("a", "a.example", "/", "web.shop.svc"),
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
				slice("shop", "web", "10.0.0.9"), bad,
			} {
				s.Apply(o, false)
			}
			backend, found, findings := builder.Backend("shop/web/80", s)
			want := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:80")}
			if local {
				want = append(want, netip.AddrPortFrom(netip.MustParseAddr(address).Unmap(), 80))
				slices.SortFunc(want, netip.AddrPort.Compare)
			}
			if got := backend.Endpoints; !found || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s (local %v): endpoints %v, want %v", address, local, got, want)
			}
			reported := slices.ContainsFunc(findings, func(f finding.Finding) bool {
				return f.Code == finding.NotAllowed && f.Object == "service/shop/web" && strings.Contains(f.Message, "EndpointSlice bad")
			})
			if reported == local {
				t.Errorf("%s (local %v): findings %v", address, local, findings)
			}
		}
	}
}
