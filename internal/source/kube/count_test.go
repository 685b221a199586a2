package kube_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestForeignObjectsCostNothing counts what is asked for, delivered and touched
// by objects that Headgate does not read.
func TestForeignObjectsCostNothing(t *testing.T) {
	const many, written = 10000, 1000
	a := newAPIServer(t)
	fill(a)
	var foreign []object
	for i := range many {
		foreign = append(foreign,
			ingress(fmt.Sprintf("foreign-%d", i), "other", "one"), secret(fmt.Sprintf("foreign-%d", i), corev1.SecretTypeOpaque, "x"),
			configMap(fmt.Sprintf("foreign-%d", i)))
	}
	a.put(foreign...)
	w := start(t, a, nil)
	w.await("the first batch", func() bool { return len(w.batches) > 0 })
	s := newStore()
	for _, c := range w.batches[0] {
		s.Apply(c.Object, c.Deleted)
	}
	const units = 8 // globals, name patterns, the default certificate, one backend, one host and the default one with their names
	if got := len(s.All()); got != units {
		t.Errorf("%d units, want %d", got, units)
	}
	if added := s.DrainSecrets().Added; len(added) != 0 {
		t.Errorf("foreign Secrets are referred to: %v", added)
	}

	// Status writes of ours and of others, and changes of foreign ones.
	from := w.count()
	var writes []object
	for i := range written {
		status := ingress(fmt.Sprintf("foreign-%d", i), "other", "one")
		status.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		writes = append(writes, status, secret(fmt.Sprintf("foreign-%d", i), corev1.SecretTypeOpaque, "y"))
	}
	ours := ingress("web", "nginx", "one")
	ours.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	a.put(append(writes, ours)...)
	changed := ingress("foreign-0", "other", "two")
	a.put(changed, ingress("last", "other", "one"))
	w.await("the last Ingress", func() bool { return w.objects["Ingress shop/last"] != nil })
	if got := fmt.Sprint(w.delivered(from)); got != "[Ingress shop/foreign-0 Ingress shop/last]" {
		t.Errorf("delivered were %.200s", got)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, batch := range w.batches[from:] {
		for _, c := range batch {
			if keys := s.Apply(c.Object, c.Deleted); len(keys) != 0 {
				t.Errorf("%s touches %v", nameOf(c.Object), keys)
			}
		}
	}
	resources := 7
	if all := a.asked(""); all != resources {
		t.Errorf("%d requests, want one for each of %d resources", all, resources)
	}
}
