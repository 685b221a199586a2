package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// The life of an application: created, changed, scaled, deleted.
func TestLife(t *testing.T) {
	g := startGate(t)
	g.cluster.NeedPods(t)
	if err := g.cluster.CreateBackend(t.Context(), clustertest.BackendDeployment(g.class, "web", 1, 0)); err != nil {
		t.Fatal(err)
	}
	shop, plain := g.host("shop"), g.host("plain")
	pair := g.createSecret("shop", shop)
	g.createIngress(g.ingress("shop", shop, "/", "web", "shop"))
	g.createIngress(g.ingress("plain", plain, "/", "web", ""))
	g.await("https://"+shop+"/", certified(pair.Certificate))
	g.await("http://"+plain+"/", status(http.StatusOK))
	g.want("http://"+shop+"/", redirecting("https://"+shop))

	pair = g.renewSecret("shop", shop)
	g.await("https://"+shop+"/", certified(pair.Certificate))
	g.updateIngress(g.ingress("plain", plain, "/below", "web", ""))
	g.await("http://"+plain+"/", status(http.StatusNotFound))
	g.want("http://"+plain+"/below/this", status(http.StatusOK))
	moved := g.host("moved")
	g.updateIngress(g.ingress("plain", moved, "/", "web", ""))
	g.await("http://"+moved+"/", status(http.StatusOK))
	g.want("http://"+plain+"/below/this", status(http.StatusNotFound))

	g.scale("web", 3)
	g.awaitPods("http://"+moved+"/", 3)
	g.scale("web", 1)
	g.awaitPods("http://"+moved+"/", 1)

	g.deleteIngress("shop")
	g.deleteIngress("plain")
	g.await("https://"+shop+"/", status(http.StatusNotFound))
	g.await("http://"+moved+"/", status(http.StatusNotFound))
	g.wantNoReload()
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

// scale has a Deployment of so many pods, and waits until they are ready.
func (g *gate) scale(name string, replicas int32) {
	g.t.Helper()
	deployments := g.cluster.Client().AppsV1().Deployments(g.class)
	must[*autoscalingv1.Scale](g)(deployments.UpdateScale(g.t.Context(), name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.class, Name: name}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{}))
	ctx, cancel := context.WithTimeout(g.t.Context(), podPatience)
	defer cancel()
	if err := g.cluster.WaitRolledOut(ctx, g.class, name); err != nil {
		g.t.Fatal(err)
	}
}

// awaitPods waits until just so many pods answer, each of them.
func (g *gate) awaitPods(url string, want int) {
	g.t.Helper()
	clustertest.Eventually(g.t, patience, func(ctx context.Context) error {
		pods := map[string]int{}
		for range 8 * want {
			a, err := g.get(ctx, url)
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

// A rolling update loses no request, since a pod serves on for the seconds that
// its preStop hook takes.
func TestRollingUpdateUnderLoad(t *testing.T) {
	g := startGate(t)
	g.cluster.NeedPods(t)
	if err := g.cluster.CreateBackend(t.Context(), clustertest.BackendDeployment(g.class, "web", 2, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	host := g.host("web")
	// Without a certificate of its own the host answers over both protocols.
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	g.await("http://"+host+"/", status(http.StatusOK))
	old := g.pods("web")
	l := g.startLoad(host)
	if err := g.cluster.Roll(t.Context(), g.class, "web"); err != nil {
		t.Fatal(err)
	}
	// The old pods are gone, not only out of service: all that they cut is seen.
	g.awaitGone("web", old)
	l.awaitMore(500)
	l.wantNoFailure()
	g.wantNoReload()
}

// awaitGone waits until none of an application's old pods is there.
func (g *gate) awaitGone(name string, old map[string]bool) {
	g.t.Helper()
	clustertest.Eventually(g.t, podPatience, func(ctx context.Context) error {
		now := g.pods(name)
		for name := range old {
			if now[name] {
				return fmt.Errorf("pod %s is still there", name)
			}
		}
		return nil
	})
}

// pods are the names of an application's pods.
func (g *gate) pods(name string) map[string]bool {
	g.t.Helper()
	list, err := g.cluster.Client().CoreV1().Pods(g.class).List(g.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		g.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, pod := range list.Items {
		names[pod.Name] = true
	}
	return names
}
