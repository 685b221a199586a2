package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// The life of an application: created, changed, scaled, deleted.
func TestLife(t *testing.T) {
	h := startHeadgate(t)
	h.cluster.NeedPods(t)
	if err := h.cluster.CreateBackend(t.Context(), clustertest.BackendDeployment(h.class, "web", 1, 0)); err != nil {
		t.Fatal(err)
	}
	shop, plain := h.host("shop"), h.host("plain")
	pair := h.createSecret("shop", shop)
	h.createIngress(h.ingress("shop", shop, "/", "web", "shop"))
	h.createIngress(h.ingress("plain", plain, "/", "web", ""))
	h.await("https://"+shop+"/", certified(pair.Certificate))
	h.await("http://"+plain+"/", status(http.StatusOK))
	h.want("http://"+shop+"/", redirecting("https://"+shop))

	pair = h.renewSecret("shop", shop)
	h.await("https://"+shop+"/", certified(pair.Certificate))
	h.updateIngress(h.ingress("plain", plain, "/below", "web", ""))
	h.await("http://"+plain+"/", status(http.StatusNotFound))
	h.want("http://"+plain+"/below/this", status(http.StatusOK))
	moved := h.host("moved")
	h.updateIngress(h.ingress("plain", moved, "/", "web", ""))
	h.await("http://"+moved+"/", status(http.StatusOK))
	h.want("http://"+plain+"/below/this", status(http.StatusNotFound))

	h.scale("web", 3)
	h.awaitPods("http://"+moved+"/", 3)
	h.scale("web", 1)
	h.awaitPods("http://"+moved+"/", 1)

	h.deleteIngress("shop")
	h.deleteIngress("plain")
	h.await("https://"+shop+"/", status(http.StatusNotFound))
	h.await("http://"+moved+"/", status(http.StatusNotFound))
	h.wantNoReload()
}

// certified expects an endpoint's answer behind a certificate.
func certified(certificate string) expectation {
	return func(a answer) error {
		if a.certificate != certificate {
			return fmt.Errorf("status %d behind another certificate than the newest", a.status)
		}
		return status(http.StatusOK)(a)
	}
}

func redirecting(where string) expectation {
	return func(a answer) error {
		if a.status != http.StatusPermanentRedirect || !strings.HasPrefix(a.location, where) {
			return fmt.Errorf("status %d to %q, want a redirect to %s", a.status, a.location, where)
		}
		return nil
	}
}

// scale sets the number of a Deployment's pods, and waits until they are ready.
func (h *headgate) scale(name string, replicas int32) {
	h.t.Helper()
	deployments := h.cluster.Client().AppsV1().Deployments(h.class)
	must[*autoscalingv1.Scale](h)(deployments.UpdateScale(h.t.Context(), name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.class, Name: name}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{}))
	ctx, cancel := context.WithTimeout(h.t.Context(), podTimeout)
	defer cancel()
	if err := h.cluster.WaitRolledOut(ctx, h.class, name); err != nil {
		h.t.Fatal(err)
	}
}

// awaitPods waits until exactly this many pods answer.
func (h *headgate) awaitPods(url string, want int) {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(ctx context.Context) error {
		pods := map[string]int{}
		for range 8 * want {
			a, err := h.get(ctx, url)
			if err == nil {
				err = status(http.StatusOK)(a)
			}
			if err != nil {
				return err
			}
			pods[a.backend]++
		}
		if len(pods) != want {
			return fmt.Errorf("these pods answer: %v, want %d", pods, want)
		}
		return nil
	})
}

// awaitGone waits until an application's old pods are gone.
func (h *headgate) awaitGone(name string, old map[string]bool) {
	h.t.Helper()
	clustertest.Eventually(h.t, podTimeout, func(ctx context.Context) error {
		now := h.pods(name)
		for name := range old {
			if now[name] {
				return fmt.Errorf("pod %s is still there", name)
			}
		}
		return nil
	})
}

// pods are the names of an application's pods.
func (h *headgate) pods(name string) map[string]bool {
	h.t.Helper()
	list, err := h.cluster.Client().CoreV1().Pods(h.class).List(h.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		h.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, pod := range list.Items {
		names[pod.Name] = true
	}
	return names
}
