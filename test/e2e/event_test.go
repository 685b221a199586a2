package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const bodySize = "nginx.ingress.kubernetes.io/proxy-body-size"

// events are those of an object, as kubectl describe finds them: "REASON TYPE
// COUNT MESSAGE".
func (g *gate) events(ctx context.Context, kind string, object metav1.Object) ([]string, error) {
	list, err := g.cluster.Client().CoreV1().Events(g.class).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": kind, "involvedObject.name": object.GetName(), "involvedObject.uid": string(object.GetUID()),
		"involvedObject.namespace": object.GetNamespace(), "source": "nginx-ingress-controller",
	}.String()})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return cmp.Compare(a.Reason+a.Message, b.Reason+b.Message) })
	var texts []string
	for _, e := range list.Items {
		texts = append(texts, fmt.Sprintf("%s %s %d %s", e.Reason, e.Type, e.Count, e.Message))
	}
	return texts, nil
}

// awaitEvents waits until an object has just so many Events, which begin so.
func (g *gate) awaitEvents(kind string, object metav1.Object, want ...string) {
	g.t.Helper()
	clustertest.Eventually(g.t, patience, func(ctx context.Context) error {
		got, err := g.events(ctx, kind, object)
		if err == nil && !slices.EqualFunc(got, want, strings.HasPrefix) {
			err = fmt.Errorf("the events are %q, want %q", got, want)
		}
		return err
	})
}

func (g *gate) putIngress(ing *networkingv1.Ingress, annotations map[string]string) *networkingv1.Ingress {
	g.t.Helper()
	ing.Annotations = annotations
	ingresses := g.cluster.Client().NetworkingV1().Ingresses(g.class)
	created, err := ingresses.Update(g.t.Context(), ing, metav1.UpdateOptions{})
	if err != nil {
		created = must[*networkingv1.Ingress](g)(ingresses.Create(g.t.Context(), ing, metav1.CreateOptions{}))
	}
	return created
}

const (
	synced = "Sync Normal 1 Scheduled for sync"
	wrong  = `InvalidValue Warning 1 nginx.ingress.kubernetes.io/proxy-body-size: invalid value "large"`
)

// A tenant finds what is wrong with an Ingress where kubectl describe shows it,
// once: mending it, and restarts of Headgate, repeat nothing.
func TestEvents(t *testing.T) {
	g := newGate(t)
	g.createClass(g.class, controllerClass(g.class))
	g.createBackend("web")
	early := g.putIngress(g.ingress("early", g.host("early"), "/", "web", ""), map[string]string{bodySize: "large"})
	g.start()
	g.awaitReady()
	// What was there before is no news, but what is wrong with it is.
	g.awaitEvents("Ingress", early, wrong)

	web := g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{bodySize: "large"})
	g.awaitEvents("Ingress", web, wrong, synced)
	web = g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{bodySize: "1m"})
	g.awaitEvents("Ingress", web, wrong, "Sync Normal 2 ")

	g.stop()
	g.start()
	g.awaitReady()
	last := g.putIngress(g.ingress("last", g.host("last"), "/", "web", ""), map[string]string{bodySize: "large"})
	// What is written in turns has come when the last of it has.
	g.awaitEvents("Ingress", last, wrong, synced)
	g.awaitEvents("Ingress", web, wrong, "Sync Normal 2 ")
	g.awaitEvents("Ingress", early, wrong)
}

// Who wants no Sync Events gets none, and all others.
func TestNoSyncEvents(t *testing.T) {
	g := startGate(t, "--disable-sync-events")
	g.createBackend("web")
	web := g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{bodySize: "large"})
	g.awaitEvents("Ingress", web, wrong)
	web = g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{bodySize: "huge"})
	g.awaitEvents("Ingress", web, strings.ReplaceAll(wrong, "large", "huge"), wrong)
}

// A reload is an Event of the Pod that the environment names.
func TestReloadEvents(t *testing.T) {
	g := newGate(t)
	pod := g.createPod()
	g.createClass(g.class, controllerClass(g.class))
	g.start()
	g.awaitReady()
	g.createBackend("web")
	g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{"nginx.ingress.kubernetes.io/proxy-buffering": "on"})
	g.awaitEvents("Pod", pod, "RELOAD Normal 1 NGINX reload triggered due to a change in configuration")
	g.putIngress(g.ingress("web", g.host("web"), "/", "web", ""), map[string]string{
		"nginx.ingress.kubernetes.io/proxy-buffering": "on", "nginx.ingress.kubernetes.io/proxy-buffers-number": "7",
	})
	g.awaitEvents("Pod", pod, "RELOAD Normal 2 ")
}

// A storm of bad Ingresses makes a bounded number of Events, and does not keep
// those of another namespace back.
func TestEventStorm(t *testing.T) {
	g := startGate(t)
	g.createBackend("web")
	other := g.cluster.Namespace(t)
	const storm = 1000
	ingresses := g.cluster.Client().NetworkingV1().Ingresses(g.class)
	g.times(storm, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("bad-%d", number)
		ing := g.ingress(name, g.host(name), "/", "web", "")
		ing.Annotations = map[string]string{bodySize: "large"}
		_, err := ingresses.Create(ctx, ing, metav1.CreateOptions{})
		return err
	})
	began := time.Now()
	calm := g.ingress("calm", g.host("calm"), "/", "web", "")
	calm.Namespace, calm.Annotations = other, map[string]string{bodySize: "large"}
	g.createIngress(calm)
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		list, err := g.cluster.Client().CoreV1().Events(other).List(ctx, metav1.ListOptions{FieldSelector: "reason=InvalidValue"})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("the other namespace has %d events", len(list.Items))
		}
		return err
	})
	t.Logf("another namespace's came %v after the storm", time.Since(began).Round(time.Millisecond))
	const results = "headgate_events_total"
	var made counts
	clustertest.Eventually(t, 4*patience, func(context.Context) error {
		made = g.counts(results)
		sum := 0
		for _, n := range made {
			sum += n
		}
		if want := 2 * (storm + 1); sum != want {
			return fmt.Errorf("of %d Events it is clear what became of them, want %d", sum, want)
		}
		return nil
	})
	n := must[*corev1.EventList](g)(g.cluster.Client().CoreV1().Events(g.class).List(t.Context(), metav1.ListOptions{}))
	t.Logf("%d Events of 2 × %d: %v", len(n.Items), storm, made)
	// Of each lane 200 wait; what is written while the storm goes on makes room.
	if len(n.Items) > storm || made[results+`{result="dropped"}`] < storm/2 {
		t.Errorf("a storm of %d bad Ingresses made %d Events: %v", storm, len(n.Items), made)
	}
}
