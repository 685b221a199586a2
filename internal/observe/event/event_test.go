package event

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/kubernetes/typed/core/v1/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/clienttest"
)

var own = types.NamespacedName{Namespace: "headgate", Name: "headgate-1"}

// A fixture is an API server and a Recorder that writes to it.
type fixture struct {
	t        *testing.T
	client   *fake.FakeCoreV1
	tracker  clienttesting.ObjectTracker
	recorder *Recorder
	log      *bytes.Buffer
	results  *prometheus.CounterVec

	mu sync.Mutex
	// writes are the requests, "create NAMESPACE/OBJECT" or "patch …".
	writes []string
	// gone objects have no UID.
	gone map[types.NamespacedName]bool
	// refuse, if set, answers a write instead.
	refuse func() error
}

func newFixture(t *testing.T) *fixture {
	b := &fixture{t: t, gone: map[types.NamespacedName]bool{}}
	b.tracker = clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	if err := b.tracker.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name, UID: "pod"}}); err != nil {
		t.Fatal(err)
	}
	b.client = &fake.FakeCoreV1{Fake: &clienttesting.Fake{}}
	b.client.AddReactor("*", "*", clienttesting.ObjectReaction(b.tracker))
	b.client.PrependReactor("*", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.writes = append(b.writes, action.GetVerb()+" "+action.GetNamespace())
		if b.refuse != nil {
			if err := b.refuse(); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	return b
}

// run starts a Recorder in the test's bubble, as a restart does.
func (b *fixture) run(edit func(*Settings)) (stop func()) {
	b.log = &bytes.Buffer{}
	b.results = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"result"})
	settings := Settings{
		Client: clienttest.OfCore(b.client), Pod: own, Written: b.results, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		UID: func(resource string, name types.NamespacedName) types.UID {
			if b.gone[name] {
				return ""
			}
			return types.UID(resource + "/" + name.String())
		},
	}
	if edit != nil {
		edit(&settings)
	}
	b.recorder = New(settings)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(b.t.Context())
	go func() { defer close(done); b.recorder.Run(ctx) }()
	return func() { cancel(); <-done }
}

func (b *fixture) events(namespace string) []corev1.Event {
	b.t.Helper()
	list, err := b.tracker.List(corev1.SchemeGroupVersion.WithResource("events"), corev1.SchemeGroupVersion.WithKind("Event"), namespace)
	if err != nil {
		b.t.Fatal(err)
	}
	return list.(*corev1.EventList).Items
}

// count is the number of requests so far.
func (b *fixture) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.writes)
}

func bad(name string) finding.Finding {
	return finding.Finding{
		Object: "ingress/shop/" + name, Field: "spec.rules[0].host", Code: finding.InvalidValue,
		Message: "it is wrong", Effect: "it is not served",
	}
}

// quiesce waits until nothing happens any more.
func quiesce() { time.Sleep(time.Hour); synctest.Wait() }

// What waits already is not taken twice; what was taken is.
func TestSameNoteWaitsOnce(t *testing.T) {
	q, n := newQueue(), note{on: subject{ingressKind, types.NamespacedName{Namespace: "shop", Name: "web"}}, reason: "Bad"}
	for range 2 {
		for range 2 {
			if !q.put(n) {
				t.Fatal("no room")
			}
		}
		if a, _, ok := q.take(time.Now()); !ok || a.note != n {
			t.Fatalf("took %+v, %v", a, ok)
		}
		if a, _, ok := q.take(time.Now()); ok {
			t.Fatalf("took %+v as well", a)
		}
	}
}

func TestFindingIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		stop := b.run(nil)
		b.recorder.Findings([]finding.Finding{bad("web"), {Object: "file/x.yaml"}, {Object: "ingressclass/x"}})
		quiesce()
		all := b.events("shop")
		if len(all) != 1 {
			t.Fatalf("events: %v", all)
		}
		e := all[0]
		if e.InvolvedObject != (corev1.ObjectReference{
			Kind: "Ingress", APIVersion: "networking.k8s.io/v1", Namespace: "shop", Name: "web", UID: "ingresses/shop/web",
		}) || e.Type != "Warning" || e.Reason != "InvalidValue" || e.Count != 1 ||
			e.Source.Component != "nginx-ingress-controller" || e.FirstTimestamp.IsZero() {
			t.Errorf("the event is %+v", e)
		}
		if want := "spec.rules[0].host: it is wrong; it is not served"; e.Message != want {
			t.Errorf("the message is %q, want %q", e.Message, want)
		}
		stop()
		// After a restart it is known. When it went and comes back it counts.
		stop = b.run(nil)
		b.recorder.Findings([]finding.Finding{bad("web")})
		quiesce()
		if all := b.events("shop"); len(all) != 1 || all[0].Count != 1 || testutil.ToFloat64(b.results.WithLabelValues(known)) != 1 {
			t.Errorf("after a restart: %v", all)
		}
		b.recorder.Findings([]finding.Finding{bad("web")})
		quiesce()
		all = b.events("shop")
		if len(all) != 1 || all[0].Count != 2 || !all[0].LastTimestamp.After(all[0].FirstTimestamp.Time) {
			t.Errorf("back again: %v", all)
		}
		// The API server forgets Events.
		b.tracker.Delete(corev1.SchemeGroupVersion.WithResource("events"), "shop", all[0].Name)
		b.recorder.Findings([]finding.Finding{bad("web")})
		quiesce()
		if all := b.events("shop"); len(all) != 1 || all[0].Count != 1 {
			t.Errorf("forgotten and back: %v", all)
		}
		stop()
	})
}

func TestTakenAndReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		web := types.NamespacedName{Namespace: "shop", Name: "web"}
		for range 2 {
			stop := b.run(nil)
			b.recorder.Taken(web)
			quiesce()
			b.recorder.Taken(web)
			b.recorder.Reloaded(nil)
			b.recorder.Reloaded(errors.New(strings.Repeat("ü", 1000)))
			quiesce()
			stop()
		}
		for _, e := range b.events("shop") {
			if e.Count != 2 || e.Type != "Normal" || e.Reason != "Sync" || e.Message != "Scheduled for sync" || e.InvolvedObject.Name != "web" {
				t.Errorf("the event is %+v", e)
			}
		}
		if n := len(b.events("shop")); n != 2 {
			t.Errorf("%d events Sync in two runs", n)
		}
		var kinds []string
		for _, e := range b.events(own.Namespace) {
			kinds = append(kinds, e.Type)
			if e.Reason != "RELOAD" || e.InvolvedObject.UID != "pod" || e.InvolvedObject.Kind != "Pod" || len(e.Message) > 1024 {
				t.Errorf("the event is %+v", e)
			}
		}
		if len(kinds) != 4 || strings.Count(strings.Join(kinds, " "), "Warning") != 2 {
			t.Errorf("the events RELOAD are %q", kinds)
		}
		b.writes = nil
		stop := b.run(func(s *Settings) { s.NoSync, s.Pod = true, types.NamespacedName{} })
		b.recorder.Taken(web)
		b.recorder.Reloaded(nil)
		quiesce()
		stop()
		if b.count() != 0 {
			t.Errorf("without Sync and Pod: %v", b.writes)
		}
	})
}

// TestStorm: one namespace's storm is bounded, and keeps nothing back of
// another's.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		stop := b.run(nil)
		defer stop()
		const storm = 10_000
		var came []finding.Finding
		for i := range storm {
			name := fmt.Sprint("n", i)
			came = append(came, bad(name))
			b.recorder.Taken(types.NamespacedName{Namespace: "shop", Name: name})
		}
		b.recorder.Findings(came)
		other := bad("web")
		other.Object = "ingress/other/web"
		b.recorder.Findings([]finding.Finding{other})
		time.Sleep(time.Second)
		synctest.Wait()
		if len(b.events("other")) != 1 {
			t.Error("another namespace's event waits for the storm")
		}
		if n, most := b.count(), burst+perSecond; n > most {
			t.Errorf("%d were written within a second, want %d at the most", n, most)
		}
		quiesce()
		// While the storm comes the first of it are written.
		if n, most := b.count(), 2*maxPerNamespace+burst+2; n < maxPerNamespace || n > most {
			t.Errorf("%d were written, want %d at the most", n, most)
		}
		if n := testutil.ToFloat64(b.results.WithLabelValues(dropped)); int(n) < 2*(storm-maxPerNamespace)-burst-2 {
			t.Errorf("%v were dropped", n)
		}
		if n := strings.Count(b.log.String(), "too many Events"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	})
}

// TestObjectIsBounded: an object has so many Events at once, and later few more.
func TestObjectIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		stop := b.run(nil)
		defer stop()
		for i := range 100 {
			f := bad("web")
			f.Message = fmt.Sprint(i)
			b.recorder.Findings([]finding.Finding{f})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.count(); n != maxBurst {
			t.Errorf("%d were written, want %d", n, maxBurst)
		}
		time.Sleep(pause)
		b.recorder.Findings([]finding.Finding{bad("web"), bad("web2")})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.count(); n != maxBurst+2 {
			t.Errorf("after a pause %d were written, want %d", n, maxBurst+2)
		}
		if n := testutil.ToFloat64(b.results.WithLabelValues(held)); n != 100-maxBurst {
			t.Errorf("%v were held", n)
		}
	})
}

func TestFailures(t *testing.T) {
	events := schema.GroupResource{Resource: "events"}
	terminating := apierrors.NewForbidden(events, "x", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for about, c := range map[string]struct {
		err    error
		writes int
		log    string
	}{
		"forbidden":   {apierrors.NewForbidden(events, "x", errors.New("no")), 2, `a permission is missing" verb="create patch" resource=events namespace=shop`},
		"terminating": {terminating, 2, ""},
		"invalid":     {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), 2, "the API server fails"},
		"away":        {errors.New("connection refused"), 2 * tries, "the API server fails"},
		"overloaded":  {apierrors.NewTooManyRequests("x", 1), 2 * tries, "the API server fails"},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(t)
				b.refuse = func() error { return c.err }
				stop := b.run(nil)
				defer stop()
				b.recorder.Findings([]finding.Finding{bad("a"), bad("b")})
				time.Sleep(4 * time.Minute)
				synctest.Wait()
				if n := b.count(); n != c.writes {
					t.Errorf("%d tries, want %d", n, c.writes)
				}
				logged := 1
				if c.log == "" {
					logged = 0
				}
				if n := strings.Count(b.log.String(), "level=WARN"); n != logged || !strings.Contains(b.log.String(), c.log) {
					t.Errorf("the log is %q", b.log)
				}
				b.mu.Lock()
				b.refuse = nil
				b.mu.Unlock()
				b.recorder.Findings([]finding.Finding{bad("c")})
				quiesce()
				if n := len(b.events("shop")); n != 1 {
					t.Errorf("after the failure %d events", n)
				}
			})
		})
	}
}

// TestFailingNamespace: Events of other namespaces do not wait where Events fail
// for long, or hang. Those are written when they can be.
func TestFailingNamespace(t *testing.T) {
	for about, c := range map[string]struct {
		takes time.Duration
		err   error
	}{
		"fails": {0, apierrors.NewInternalError(errors.New("a webhook is away"))},
		"hangs": {askTimeout, context.DeadlineExceeded},
		"slow":  {askTimeout - 1, nil},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(t)
				var mended atomic.Bool
				b.client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if action.GetNamespace() != "bad" || mended.Load() {
						return false, nil, nil
					}
					time.Sleep(c.takes)
					return c.err != nil, nil, c.err
				})
				stop := b.run(nil)
				defer stop()
				const each = 20
				for _, namespace := range []string{"bad", "good"} {
					for i := range each {
						f := bad("")
						f.Object = fmt.Sprintf("ingress/%s/n%d", namespace, i)
						b.recorder.Findings([]finding.Finding{f})
					}
				}
				time.Sleep(2 * askTimeout)
				synctest.Wait()
				if n := len(b.events("good")); n != each {
					t.Errorf("of %d events %d are written", each, n)
				}
				mended.Store(true)
				quiesce()
				if n := len(b.events("bad")); n != each {
					t.Errorf("of %d events that could not be written %d are at the end", each, n)
				}
				if n := len(b.recorder.queue.backoffs); n != 0 {
					t.Errorf("%d namespaces rest at the end", n)
				}
			})
		})
	}
}

// What is gone has no Events, and a Pod that may not be read is logged.
func TestNothingToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		b.gone[types.NamespacedName{Namespace: "shop", Name: "web"}] = true
		b.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, own.Name, errors.New("no"))
		})
		stop := b.run(nil)
		defer stop()
		b.recorder.Findings([]finding.Finding{bad("web")})
		b.recorder.Reloaded(nil)
		quiesce()
		if b.count() != 0 || !strings.Contains(b.log.String(), `a permission is missing" verb=get resource=pods namespace=headgate`) {
			t.Errorf("written were %v, logged %s", b.writes, b.log)
		}
	})
}
