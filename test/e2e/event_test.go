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

// events returns the Events of an object, as kubectl describe finds them:
// "REASON TYPE COUNT MESSAGE".
func (h *headgate) events(ctx context.Context, kind string, object metav1.Object) ([]string, error) {
	list, err := h.cluster.Client().CoreV1().Events(h.class).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
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

// awaitEvents waits until an object has exactly the Events with these beginnings.
func (h *headgate) awaitEvents(kind string, object metav1.Object, want ...string) {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(ctx context.Context) error {
		got, err := h.events(ctx, kind, object)
		if err == nil && !slices.EqualFunc(got, want, strings.HasPrefix) {
			err = fmt.Errorf("the events are %q, want %q", got, want)
		}
		return err
	})
}

func (h *headgate) putIngress(ing *networkingv1.Ingress, annotations map[string]string) *networkingv1.Ingress {
	h.t.Helper()
	ing.Annotations = annotations
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(h.class)
	created, err := ingresses.Update(h.t.Context(), ing, metav1.UpdateOptions{})
	if err != nil {
		created = must[*networkingv1.Ingress](h)(ingresses.Create(h.t.Context(), ing, metav1.CreateOptions{}))
	}
	return created
}

const (
	synced = "Sync Normal 1 Scheduled for sync"
	wrong  = `InvalidValue Warning 1 nginx.ingress.kubernetes.io/proxy-body-size: invalid value "large"`
)

// kubectl describe shows a tenant each finding about an Ingress once: neither a
// correction nor a restart of Headgate repeats it.
func TestEvents(t *testing.T) {
	h := newHeadgate(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	early := h.putIngress(h.ingress("early", h.host("early"), "/", "web", ""), map[string]string{bodySize: "large"})
	h.start()
	h.awaitReady()
	// An Ingress from before the start gets no Sync Event, but its finding.
	h.awaitEvents("Ingress", early, wrong)

	web := h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{bodySize: "large"})
	h.awaitEvents("Ingress", web, wrong, synced)
	web = h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{bodySize: "1m"})
	h.awaitEvents("Ingress", web, wrong, "Sync Normal 2 ")

	h.stop()
	h.start()
	h.awaitReady()
	last := h.putIngress(h.ingress("last", h.host("last"), "/", "web", ""), map[string]string{bodySize: "large"})
	// Events are written in order: once the last one is there, all are.
	h.awaitEvents("Ingress", last, wrong, synced)
	h.awaitEvents("Ingress", web, wrong, "Sync Normal 2 ")
	h.awaitEvents("Ingress", early, wrong)
}

// --disable-sync-events disables Sync Events alone.
func TestNoSyncEvents(t *testing.T) {
	h := startHeadgate(t, "--disable-sync-events")
	h.createBackend("web")
	web := h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{bodySize: "large"})
	h.awaitEvents("Ingress", web, wrong)
	web = h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{bodySize: "huge"})
	h.awaitEvents("Ingress", web, strings.ReplaceAll(wrong, "large", "huge"), wrong)
}

// A reload is an Event of the Pod that the environment names.
func TestReloadEvents(t *testing.T) {
	h := newHeadgate(t)
	pod := h.createPod()
	h.createClass(h.class, controllerClass(h.class))
	h.start()
	h.awaitReady()
	h.createBackend("web")
	h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{"nginx.ingress.kubernetes.io/proxy-buffering": "on"})
	h.awaitEvents("Pod", pod, "RELOAD Normal 1 NGINX reload triggered due to a change in configuration")
	h.putIngress(h.ingress("web", h.host("web"), "/", "web", ""), map[string]string{
		"nginx.ingress.kubernetes.io/proxy-buffering": "on", "nginx.ingress.kubernetes.io/proxy-buffers-number": "7",
	})
	h.awaitEvents("Pod", pod, "RELOAD Normal 2 ")
}

// Many invalid Ingresses make a limited number of Events, and don't delay those
// of another namespace.
func TestEventStorm(t *testing.T) {
	h := startHeadgate(t)
	h.createBackend("web")
	other := h.cluster.Namespace(t)
	const storm = 1000
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(h.class)
	h.times(storm, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("bad-%d", number)
		ing := h.ingress(name, h.host(name), "/", "web", "")
		ing.Annotations = map[string]string{bodySize: "large"}
		_, err := ingresses.Create(ctx, ing, metav1.CreateOptions{})
		return err
	})
	began := time.Now()
	single := h.ingress("single", h.host("single"), "/", "web", "")
	single.Namespace, single.Annotations = other, map[string]string{bodySize: "large"}
	h.createIngress(single)
	clustertest.Eventually(t, timeout, func(ctx context.Context) error {
		list, err := h.cluster.Client().CoreV1().Events(other).List(ctx, metav1.ListOptions{FieldSelector: "reason=InvalidValue"})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("the other namespace has %d events", len(list.Items))
		}
		return err
	})
	t.Logf("the Event in another namespace was written %v after the storm", time.Since(began).Round(time.Millisecond))
	const results = "headgate_events_total"
	var made counts
	clustertest.Eventually(t, 4*timeout, func(context.Context) error {
		made = h.counts(results)
		sum := 0
		for _, n := range made {
			sum += n
		}
		if want := 2 * (storm + 1); sum != want {
			return fmt.Errorf("%d Events were written or dropped, want %d", sum, want)
		}
		return nil
	})
	n := must[*corev1.EventList](h)(h.cluster.Client().CoreV1().Events(h.class).List(t.Context(), metav1.ListOptions{}))
	t.Logf("%d Events of 2 × %d: %v", len(n.Items), storm, made)
	// At most 200 Events of a lane wait; each one that is written makes room.
	if len(n.Items) > storm || made[results+`{result="dropped"}`] < storm/2 {
		t.Errorf("a storm of %d bad Ingresses made %d Events: %v", storm, len(n.Items), made)
	}
}
