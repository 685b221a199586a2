package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An event costs what it touches: what is nobody's business, in any number,
// builds nothing, and a change builds what it changes.
func TestWork(t *testing.T) {
	g, host := startServing(t)
	certificate := g.host("secured")
	before := g.work()

	g.createForeignIngresses(1000)
	g.createForeignSecrets(1000)
	g.renewLease(200)
	g.writeStatus(200)
	// A change of each resource that comes behind all this, so that all this
	// was seen when it is served.
	g.createIngress(g.ingress("barrier", g.host("barrier"), "/", "web", ""))
	pair := g.renewSecret("secured", certificate)
	g.await("http://"+g.host("barrier")+"/", from("web"))
	g.await("https://"+certificate+"/", showing(pair, "web"))
	g.wantWork(before, counts{
		built("host"): 1, sent("host"): 1, // the barrier
		built("name"): 2, sent("name"): 2, // the barrier, and the one with the certificate
		sent("certificate"): 2, // the new one, and the end of the old one
	})

	before = g.work()
	g.changeEndpoint("web", g.startEndpoint("other"))
	g.await("http://"+host+"/", from("other"))
	g.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// times does something so many times, by several hands.
func (g *gate) times(n int, do func(ctx context.Context, number int) error) {
	g.t.Helper()
	const hands = 8
	var next atomic.Int64
	failed := make(chan error, hands)
	for range hands {
		go func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= n {
					failed <- nil
					return
				}
				if err := do(g.t.Context(), number); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range hands {
		if err := <-failed; err != nil {
			g.t.Fatal(err)
		}
	}
}

// createForeignIngresses creates Ingresses of another controller's class.
func (g *gate) createForeignIngresses(n int) {
	g.t.Helper()
	other := g.class + "-other"
	g.createClass(other, "headgate.invalid/other")
	ingresses := g.cluster.Client().NetworkingV1().Ingresses(g.class)
	g.times(n, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("foreign-%d", number)
		ing := g.ingress(name, g.host(name), "/", "web", "secured")
		ing.Spec.IngressClassName = &other
		_, err := ingresses.Create(ctx, ing, metav1.CreateOptions{})
		return err
	})
}

// createForeignSecrets creates Secrets that no Ingress names, and changes them.
func (g *gate) createForeignSecrets(n int) {
	g.t.Helper()
	secrets := g.cluster.Client().CoreV1().Secrets(g.class)
	g.times(n, func(ctx context.Context, number int) error {
		_, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", number)},
			StringData: map[string]string{"auth": strconv.Itoa(number)},
		}, metav1.CreateOptions{})
		return err
	})
}

func (g *gate) renewLease(n int) {
	g.t.Helper()
	leases := g.cluster.Client().CoordinationV1().Leases(g.class)
	lease := must[*coordinationv1.Lease](g)(leases.Create(g.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "someone"},
	}, metav1.CreateOptions{}))
	for range n {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		lease = must[*coordinationv1.Lease](g)(leases.Update(g.t.Context(), lease, metav1.UpdateOptions{}))
	}
}

// writeStatus writes what nobody reads into the Ingress and the Service that
// are served.
func (g *gate) writeStatus(n int) {
	g.t.Helper()
	client := g.cluster.Client()
	for number := range n {
		address := fmt.Sprintf("192.0.2.%d", number)
		status := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
		must[*networkingv1.Ingress](g)(client.NetworkingV1().Ingresses(g.class).Patch(
			g.t.Context(), "web", types.MergePatchType, status, metav1.PatchOptions{}, "status"))
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, address)
		must[*corev1.Service](g)(client.CoreV1().Services(g.class).Patch(
			g.t.Context(), "web", types.MergePatchType, note, metav1.PatchOptions{}))
	}
}
