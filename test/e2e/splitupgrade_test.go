package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// A release with everything in one gets controls and edges apart, and goes back, under load: no request fails, and the
// status is never without its address.
func TestUpgradeToSplit(t *testing.T) {
	s := newSplit(t, "")
	host := s.host("web")
	s.createBackend("web")
	s.createIngress(s.ingress("web", host, "/", "web", ""))
	s.apply("install")
	address := s.clientService().Spec.ClusterIP
	s.awaitAddress(address, host)
	s.awaitShown(address)
	unwatch := s.watchStatus("web")
	l := s.newLoad(address)
	for number := range 4 {
		l.add(client{host: host, secure: number%2 == 1}, number > 1, 10*pace)
		l.add(client{host: host, fresh: true, secure: number%2 == 1}, number > 1, 20*pace)
	}
	l.awaitMore(50)

	for number, mode := range []string{"split", "all-in-one"} {
		old := slices.Concat(s.release("controller"), s.release("control"))
		s.apply("upgrade", "--set", "controller.mode="+mode)
		s.awaitEnded(old)
		l.awaitMore(50)
		if controls, split := len(s.release("control")), mode == "split"; (controls == 2) != split || len(s.release("controller")) != 2 {
			t.Errorf("with mode %s, there are %d controls", mode, controls)
		}
		served := fmt.Sprintf("endpoint-%d", number)
		s.changeEndpoint("web", s.startEndpoint(served))
		for _, pod := range s.release("controller") {
			s.address = pod.Status.PodIP
			s.await("http://"+host+"/", from(served))
		}
		s.createIngress(s.ingress(mode, s.host(mode), "/", "web", ""))
		s.awaitShown(address)
	}
	if now := s.clientService().Spec.ClusterIP; now != address {
		t.Errorf("the Service has the address %s, and had %s", now, address)
	}
	l.awaitMore(50)
	l.wantNoFailure()
	if err := unwatch(); err != nil {
		t.Error(err)
	}
}

// awaitEnded waits until pods are gone.
func (s *splitRelease) awaitEnded(old []corev1.Pod) {
	s.t.Helper()
	clustertest.Eventually(s.t, podTimeout, func(ctx context.Context) error {
		list, err := s.cluster.Client().CoreV1().Pods(s.class).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if slices.ContainsFunc(old, func(o corev1.Pod) bool { return o.UID == pod.UID }) {
				return fmt.Errorf("the pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}
