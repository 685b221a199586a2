package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/test/clienttest"
)

func ingress(name string, ips ...string) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, ip := range ips {
		ing.Status.LoadBalancer.Ingress = append(ing.Status.LoadBalancer.Ingress, networkingv1.IngressLoadBalancerIngress{IP: ip})
	}
	return ing
}

func given(ips ...string) (list Addresses) {
	for _, ip := range ips {
		list = append(list, address{ip: ip})
	}
	return list
}

// A fixture is a Writer in a cluster.
type fixture struct {
	*Writer
	t       *testing.T
	cluster *fake.Clientset
	leads   atomic.Bool
	leaving chan struct{}
	ended   chan struct{}

	// before is called with each write before it is done.
	before func(*networkingv1.Ingress) error
	mu     sync.Mutex
	writes []string
}

func newFixture(t *testing.T, settings Settings, objects ...runtime.Object) *fixture {
	b := &fixture{
		t: t, cluster: selecting(fake.NewClientset(objects...)), leaving: make(chan struct{}), ended: make(chan struct{}),
		before: func(*networkingv1.Ingress) error { return nil },
	}
	b.leads.Store(true)
	b.cluster.PrependReactor("update", "ingresses", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" {
			return false, nil, nil
		}
		ing := action.(clienttesting.UpdateAction).GetObject().(*networkingv1.Ingress)
		// The fake handles one request at a time.
		if err := b.before(ing); err != nil {
			return true, nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.writes = append(b.writes, ing.Name+"="+shownBy(ing).String())
		return false, nil, nil
	})
	settings.Client, settings.Leads, settings.Rate = clienttest.Of(b.cluster), b.leads.Load, 1000
	settings.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	if settings.Interval == 0 {
		settings.Interval = time.Hour
	}
	if len(settings.Source.Addresses) == 0 && settings.Source.Service.Name == "" {
		settings.Source.Addresses = given("192.0.2.1")
	}
	b.Writer = New(settings)
	return b
}

// lead leads until the test ends or leave is closed.
func (b *fixture) lead() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(b.ended)
		b.Lead(ctx, b.leaving)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-b.ended
	})
}

// put puts Ingresses into the cluster and passes them to the Writer.
func (b *fixture) put(list ...*networkingv1.Ingress) {
	b.t.Helper()
	for _, ing := range list {
		if err := b.cluster.Tracker().Add(ing.DeepCopy()); err != nil {
			b.t.Fatal(err)
		}
	}
	b.Select(list, nil)
}

// done returns what was written, sorted.
func (b *fixture) done() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.writes)
	return strings.Join(b.writes, " ")
}

// await waits until exactly this was written since the last call.
func (b *fixture) await(want string) {
	b.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); b.done() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("written was %q, want %q", b.done(), want)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes = nil
}

// TestWrites: Ingresses with another status are written at once when they appear
// and when this replica starts to lead, and others never.
func TestWrites(t *testing.T) {
	b := newFixture(t, Settings{})
	b.put(ingress("empty"), ingress("right", "192.0.2.1"), ingress("wrong", "192.0.2.1", "192.0.2.2"), ingress("left", "192.0.2.3"))
	b.Select(nil, []types.NamespacedName{{Namespace: "shop", Name: "left"}})
	if got := b.done(); got != "" {
		t.Errorf("before it leads it writes %s", got)
	}
	b.lead()
	b.await("empty=192.0.2.1 wrong=192.0.2.1")
	b.put(ingress("same", "192.0.2.1"), ingress("new", "192.0.2.4"))
	b.await("new=192.0.2.1")
	// Events about the Writer's own writes cause no write.
	b.Select([]*networkingv1.Ingress{ingress("new", "192.0.2.1"), ingress("empty", "192.0.2.1")}, nil)
	// Neither do changes of other clients, before the interval has passed.
	b.Select([]*networkingv1.Ingress{ingress("right", "192.0.2.9")}, nil)
	b.put(ingress("barrier"))
	b.await("barrier=192.0.2.1")
}

// TestOrder: a new Ingress does not wait for all existing ones.
func TestOrder(t *testing.T) {
	b := newFixture(t, Settings{})
	release := make(chan struct{})
	b.before = func(*networkingv1.Ingress) error {
		<-release
		return nil
	}
	for i := range 1000 {
		b.put(ingress(fmt.Sprintf("old-%d", i)))
	}
	b.lead()
	release <- struct{}{}
	b.put(ingress("new"))
	// Writes in progress come first, and the fake may handle later requests
	// earlier, but by far not all.
	for range 20 * parallel {
		release <- struct{}{}
	}
	release <- struct{}{} // the previous one has been recorded by then
	if done := b.done(); !strings.Contains(done, "new=") {
		t.Errorf("written was %s", done)
	}
	close(release)
}

// TestInterval: changes of other clients are corrected once per interval.
func TestInterval(t *testing.T) {
	b := newFixture(t, Settings{Interval: 50 * time.Millisecond})
	b.put(ingress("web", "192.0.2.1"))
	b.lead()
	other := ingress("web", "192.0.2.9")
	if err := b.cluster.Tracker().Update(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, other, "shop"); err != nil {
		t.Fatal(err)
	}
	b.Select([]*networkingv1.Ingress{other}, nil)
	b.await("web=192.0.2.1")
}

// TestServiceChanges: when the addresses change, all Ingresses are written at once.
func TestServiceChanges(t *testing.T) {
	balancer := service(corev1.ServiceTypeLoadBalancer, nil)
	b := newFixture(t, Settings{Source: AddressSource{Service: publish}}, balancer)
	b.put(ingress("one", "192.0.2.1"), ingress("two"))
	b.lead()
	b.await("one=") // the Service has none yet
	balancer = balancer.DeepCopy()
	balancer.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if _, err := b.cluster.CoreV1().Services("headgate").UpdateStatus(t.Context(), balancer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.await("one=192.0.2.7 two=192.0.2.7")
	if err := b.cluster.CoreV1().Services("headgate").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without the Service, the addresses are unknown and nothing changes.
	b.put(ingress("three"))
	b.await("three=192.0.2.7")
}

// TestFence: a replica that lost the leadership does not write, even if the write
// had begun.
func TestFence(t *testing.T) {
	b := newFixture(t, Settings{Interval: 10 * time.Millisecond})
	asked := make(chan struct{}, 1000)
	b.cluster.PrependReactor("get", "ingresses", func(clienttesting.Action) (bool, runtime.Object, error) {
		// It led when the write began.
		b.leads.Store(false)
		asked <- struct{}{}
		return false, nil, nil
	})
	b.put(ingress("web"), ingress("more"))
	b.lead()
	for range 3 {
		<-asked
	}
	if got := b.done(); got != "" {
		t.Errorf("it writes %s", got)
	}
}

// TestConflict: a write with a conflict is retried with the newest version, unless
// that has another class.
func TestConflict(t *testing.T) {
	b := newFixture(t, Settings{})
	conflicts := 0
	b.before = func(ing *networkingv1.Ingress) error {
		if conflicts++; conflicts < 3 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "ingresses"}, ing.Name, fmt.Errorf("newer"))
		}
		return nil
	}
	b.put(ingress("web"))
	b.lead()
	b.await("web=192.0.2.1")

	ours, theirs := "ours", "theirs"
	known, live := ingress("moved"), ingress("moved")
	known.Spec.IngressClassName, live.Spec.IngressClassName = &ours, &theirs
	if err := b.cluster.Tracker().Add(live); err != nil {
		t.Fatal(err)
	}
	b.Select([]*networkingv1.Ingress{known}, nil)
	b.put(ingress("barrier"))
	b.await("barrier=192.0.2.1")
}

// TestFailure: an Ingress that can't be written does not delay others, and is
// retried.
func TestFailure(t *testing.T) {
	b := newFixture(t, Settings{Interval: 20 * time.Millisecond})
	var allowed atomic.Bool
	b.before = func(ing *networkingv1.Ingress) error {
		if ing.Name == "web" && !allowed.Load() {
			return fmt.Errorf("refused")
		}
		return nil
	}
	b.put(ingress("web"), ingress("more"))
	b.lead()
	b.await("more=192.0.2.1")
	allowed.Store(true)
	b.await("web=192.0.2.1")
}

// TestFailuresBackOff: Ingresses that can't be written do not delay others, now and
// at the end, and are retried, but not too often.
func TestFailuresBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t, Settings{Clear: true, Interval: 5 * time.Second})
		const refused = 10 * parallel
		var tries, allowed atomic.Int32
		b.before = func(ing *networkingv1.Ingress) error {
			if !strings.HasPrefix(ing.Name, "bad") || allowed.Load() != 0 {
				return nil
			}
			tries.Add(1)
			if strings.HasSuffix(ing.Name, "0") {
				return apierrors.NewConflict(schema.GroupResource{Resource: "ingresses"}, ing.Name, errors.New("newer"))
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "ingresses"}, ing.Name, errors.New("refused"))
		}
		for i := range refused {
			b.put(ingress(fmt.Sprintf("bad-%d", i)))
		}
		b.lead()
		// All writers have had several of them by then.
		time.Sleep(firstPause / 10)
		b.put(ingress("new"))
		time.Sleep(firstPause / 2)
		synctest.Wait()
		if got := b.done(); got != "new=192.0.2.1" {
			t.Errorf("written is %q: the new one waits for the others", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// After 0, 1, 3, 7, 15, 31 and 61 seconds; a tenth five times each.
		if n, most := int(tries.Load()), 7*refused*14/10; n < 6*refused || n > most {
			t.Errorf("%d tries of %d Ingresses within a minute, want %d at the most", n, refused, most)
		}
		allowed.Store(1)
		time.Sleep(longestPause)
		synctest.Wait()
		if n := len(strings.Fields(b.done())); n != refused+1 {
			t.Errorf("%d are written at the end, want %d", n, refused+1)
		}
		allowed.Store(0)
		b.mu.Lock()
		b.writes = nil
		b.mu.Unlock()
		close(b.leaving)
		<-b.ended
		if got := b.done(); got != "new=" {
			t.Errorf("written at the end is %q", got)
		}
	})
}

// TestLeave: the addresses are removed with the last replica only, and only if that
// is configured.
func TestLeave(t *testing.T) {
	self := types.NamespacedName{Namespace: "headgate", Name: "self"}
	alone := []runtime.Object{pod("self", "a", true, "app=headgate")}
	edges := []types.NamespacedName{{Namespace: "headgate", Name: "edge"}}
	for _, c := range []struct {
		about    string
		settings Settings
		objects  []runtime.Object
		want     string
	}{
		{"outside a pod", Settings{Clear: true}, nil, "one= two="},
		{"not wanted", Settings{Clear: false}, nil, ""},
		{"alone", Settings{Clear: true, Source: AddressSource{Pod: self, Addresses: given("192.0.2.1")}}, alone, "one= two="},
		{
			"another pod", Settings{Clear: true, Source: AddressSource{Pod: self, Addresses: given("192.0.2.1")}},
			append(alone, pod("other", "a", false, "app=headgate")), "",
		},
		{"no pod", Settings{Clear: true, Source: AddressSource{Pod: self, Addresses: given("192.0.2.1")}}, nil, ""},
		{
			"an edge", Settings{Clear: true, Source: AddressSource{Pod: self, Edges: edges, Addresses: given("192.0.2.1")}},
			append(alone, edge("headgate", "one", "edge", "a", false)), "",
		},
		{"no edge", Settings{Clear: true, Source: AddressSource{Pod: self, Edges: edges, Addresses: given("192.0.2.1", "192.0.2.2")}}, alone, "one= two="},
		{"several addresses", Settings{Clear: true, Source: AddressSource{Addresses: given("192.0.2.1", "192.0.2.2")}}, nil, ""},
	} {
		b := newFixture(t, c.settings, c.objects...)
		given := b.settings.Source.Addresses.String()
		shown := strings.Split(given, ",")
		b.put(ingress("one", shown...), ingress("two", shown...), ingress("empty"))
		b.lead()
		b.await("empty=" + given)
		b.Select(nil, []types.NamespacedName{{Namespace: "shop", Name: "empty"}})
		close(b.leaving)
		<-b.ended
		if got := b.done(); got != c.want {
			t.Errorf("%s: written is %q, want %q", c.about, got, c.want)
		}
	}
}
