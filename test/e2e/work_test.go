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

// A change builds only the units that it affects. Objects that no Ingress of
// Headgate's refers to build nothing, however many they are.
func TestWork(t *testing.T) {
	h, host := startServing(t)
	certificate := h.host("secured")
	before := h.work()

	h.createForeignIngresses(1000)
	h.createForeignSecrets(1000)
	h.renewLease(200)
	h.writeStatus(200)
	// A later change of each resource: once it is served, the controller has seen
	// all of the above.
	h.createIngress(h.ingress("barrier", h.host("barrier"), "/", "web", ""))
	pair := h.renewSecret("secured", certificate)
	h.await("http://"+h.host("barrier")+"/", from("web"))
	h.await("https://"+certificate+"/", showing(pair, "web"))
	h.wantWork(before, counts{
		built("host"): 1, sent("host"): 1, // the barrier
		built("name"): 2, sent("name"): 2, // the barrier, and the one with the certificate
		sent("certificate"): 2, // the new one, and the end of the old one
	})

	before = h.work()
	h.changeEndpoint("web", h.startEndpoint("other"))
	h.await("http://"+host+"/", from("other"))
	h.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// times calls do n times, from several goroutines.
func (h *headgate) times(n int, do func(ctx context.Context, number int) error) {
	h.t.Helper()
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
				if err := do(h.t.Context(), number); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range hands {
		if err := <-failed; err != nil {
			h.t.Fatal(err)
		}
	}
}

// createForeignIngresses creates Ingresses of another controller's class.
func (h *headgate) createForeignIngresses(n int) {
	h.t.Helper()
	other := h.class + "-other"
	h.createClass(other, "headgate.invalid/other")
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(h.class)
	h.times(n, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("foreign-%d", number)
		ing := h.ingress(name, h.host(name), "/", "web", "secured")
		ing.Spec.IngressClassName = &other
		_, err := ingresses.Create(ctx, ing, metav1.CreateOptions{})
		return err
	})
}

// createForeignSecrets creates Secrets that no Ingress names, and changes them.
func (h *headgate) createForeignSecrets(n int) {
	h.t.Helper()
	secrets := h.cluster.Client().CoreV1().Secrets(h.class)
	h.times(n, func(ctx context.Context, number int) error {
		_, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", number)},
			StringData: map[string]string{"auth": strconv.Itoa(number)},
		}, metav1.CreateOptions{})
		return err
	})
}

func (h *headgate) renewLease(n int) {
	h.t.Helper()
	leases := h.cluster.Client().CoordinationV1().Leases(h.class)
	lease := must[*coordinationv1.Lease](h)(leases.Create(h.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "someone"},
	}, metav1.CreateOptions{}))
	for range n {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		lease = must[*coordinationv1.Lease](h)(leases.Update(h.t.Context(), lease, metav1.UpdateOptions{}))
	}
}

// writeStatus writes a status and an annotation that have no effect into the
// Ingress and the Service that are served.
func (h *headgate) writeStatus(n int) {
	h.t.Helper()
	client := h.cluster.Client()
	for number := range n {
		address := fmt.Sprintf("192.0.2.%d", number)
		status := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
		must[*networkingv1.Ingress](h)(client.NetworkingV1().Ingresses(h.class).Patch(
			h.t.Context(), "web", types.MergePatchType, status, metav1.PatchOptions{}, "status"))
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, address)
		must[*corev1.Service](h)(client.CoreV1().Services(h.class).Patch(
			h.t.Context(), "web", types.MergePatchType, note, metav1.PatchOptions{}))
	}
}
