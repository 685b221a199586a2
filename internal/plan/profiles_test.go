package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// stepSize is a limit: less is stricter.
var stepSize = directive.Directive{Name: "step", Kind: directive.Size, Order: directive.AtMost, Unlimited: true, Strictest: directive.Number(1 << 10)}

// steps is a feature whose values are as many profiles.
func steps() []feature.Feature {
	step := feature.Setting[int]{Annotation: "step", Default: 1 << 20, Parse: feature.Int(1, 1<<30)}
	return []feature.Feature{{Name: "steps", Settings: []feature.AnySetting{step}, Route: func(v feature.Values, out *feature.RouteOut) {
		out.Route.Profile = out.Route.Profile.With(stepSize.To(int64(step.Get(v))))
	}}}
}

// An instance builds as the controller does.
type instance struct {
	store    *store.Store
	builder  *build.Builder
	desired  *plan.Desired
	hosts    map[string]model.Host
	findings map[string][]finding.Finding
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	g := &instance{builder: build.New(steps(), "x"), desired: plan.NewDesired(directive.List{stepSize}), hosts: map[string]model.Host{}, findings: map[string][]finding.Finding{}}
	g.store = store.New(store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true}, g.builder.Refer)
	globals, _ := g.builder.Globals(g.store)
	g.desired.Set(unit.Of(globals))
	return g
}

// apply returns how many hosts were built.
func (g *instance) apply(deleted bool, ingresses ...*networkingv1.Ingress) int {
	built := 0
	for _, ing := range ingresses {
		for _, key := range g.store.Apply(ing, deleted) {
			if key.Kind == unit.Host {
				g.build(key.Name)
				built++
			}
		}
	}
	again := g.desired.Rebound()
	for _, host := range again {
		g.build(host)
	}
	if left := g.desired.Rebound(); left != nil {
		panic(fmt.Sprint("not decided: ", left))
	}
	return built + len(again)
}

func (g *instance) build(name string) {
	host, found, _ := g.builder.Host(name, g.store)
	delete(g.findings, name)
	if !found {
		g.desired.Set(unit.Built{Key: unit.Host.Key(name)})
		delete(g.hosts, name)
		return
	}
	if fs := g.desired.Set(unit.Of(host)); len(fs) > 0 {
		g.findings[name] = fs
	}
	g.desired.BoundProfiles(&host)
	g.hosts[name] = host
}

// served is the step of an Ingress's route.
func (g *instance) served(number int) int64 {
	return g.hosts[fmt.Sprintf("h%d.test", number)].Routes[0].Profile.Value(stepSize.Name)
}

func (g *instance) distinct() int {
	set := map[model.Profile]bool{}
	for _, h := range g.hosts {
		for _, r := range h.Routes {
			set[r.Profile] = true
		}
	}
	return len(set)
}

// routes are what matters of them, by host.
func (g *instance) routes() map[string]string {
	text := map[string]string{}
	for name, h := range g.hosts {
		for _, r := range h.Routes {
			text[name] += fmt.Sprintf("%s %+v %v\n", r.Path, r.Profile, r.Denied)
		}
	}
	return text
}

// stepped is the Ingress of that number, which is its age, with a host of its
// own. Step 0 is the default.
func stepped(number, step int) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("i", number), CreationTimestamp: metav1.NewTime(time.Unix(int64(number), 0)),
	}}
	if step > 0 {
		ing.Annotations = map[string]string{"x/step": fmt.Sprint(step)}
	}
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: fmt.Sprintf("h%d.test", number), IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}}},
	}}}
	return ing
}

const maxProfiles = 200

// TestProfilesBounded: up to 200 profiles, each route has the one that was asked
// for; beyond, the oldest keep theirs and the others get the nearest stricter one.
func TestProfilesBounded(t *testing.T) {
	g := newInstance(t)
	for n := range 2000 {
		if built := g.apply(false, stepped(n, 2048+n%5)); built != 1 {
			t.Fatalf("Ingress %d built %d hosts", n, built)
		}
	}
	if n := g.distinct(); n != 5 || len(g.findings) > 0 {
		t.Errorf("five tuples make %d profiles, findings %v", n, g.findings)
	}
	// With the default one and the strictest there is room for 193 more.
	for n := range 193 {
		g.apply(false, stepped(10000+n, 10000+10*n))
	}
	if n := g.distinct(); n != maxProfiles-2 || len(g.findings) > 0 {
		t.Errorf("%d profiles, findings %v", n, g.findings)
	}
	g.apply(false, stepped(20000, 20000001), stepped(20001, 1000), stepped(20002, 1025), stepped(20003, 10055), stepped(20004, 0), stepped(20005, 10050))
	for number, want := range map[int]int64{
		0: 2048, 10000: 10000, 10192: 11920, 20000: 1 << 20, 20002: 1024, 20003: 10050, 20004: 1 << 20, 20005: 10050,
	} {
		if got := g.served(number); got != want {
			t.Errorf("Ingress %d is served %d, want %d", number, got, want)
		}
	}
	over := func(number int) string {
		var text []string
		for _, f := range g.findings[fmt.Sprintf("h%d.test", number)] {
			text = append(text, f.String())
		}
		return strings.Join(text, "\n")
	}
	const finding = "ingress/default/i%d metadata.annotations TooMany: there are more than 200 different combinations of static settings, and older Ingresses already have this namespace's share of them; %s"
	for number, want := range map[int]string{
		0: "", 20004: "", 20005: "",
		20003: fmt.Sprintf(finding, 20003, "using the nearest stricter combination: step 10050, not 10055"),
		20001: fmt.Sprintf(finding, 20001, "none of these combinations is as strict: the paths answer 503"),
	} {
		if diff := cmp.Diff(want, over(number)); diff != "" {
			t.Errorf("Ingress %d (-want +got):\n%s", number, diff)
		}
	}
	if h := g.hosts["h20001.test"]; !h.Routes[0].Denied {
		t.Error("a route is served less strictly than it asks for")
	}
	if n := g.distinct(); n > maxProfiles {
		t.Errorf("%d profiles", n)
	}
	// Room comes back.
	for n := range 4 {
		g.apply(true, stepped(10000+n, 0))
	}
	if g.apply(true, stepped(20001, 0)); len(g.findings) > 0 || g.served(20003) != 10055 || g.served(20002) != 1025 {
		t.Errorf("with room again: %d, findings %v", g.served(20003), g.findings)
	}
}

// TestManyValuesBounded: a tenant who writes a thousand values.
func TestManyValuesBounded(t *testing.T) {
	g := newInstance(t)
	for n := range 20 {
		g.apply(false, stepped(n, 5000+n))
	}
	var tenant []*networkingv1.Ingress
	for n := range 1000 {
		tenant = append(tenant, stepped(100+n, 100000+n))
	}
	g.apply(false, tenant...)
	// No route asks for the default one and the strictest.
	if n := g.distinct(); n != maxProfiles-2 {
		t.Errorf("%d profiles", n)
	}
	for n := range 20 {
		if got := g.served(n); got != int64(5000+n) {
			t.Errorf("Ingress %d, which is older, is served %d", n, got)
		}
	}
	// What is known costs no more than its own host.
	if built := g.apply(false, stepped(5000, 5001)); built != 1 || g.served(5000) != 5001 {
		t.Errorf("a known tuple built %d hosts and is served %d", built, g.served(5000))
	}
}

// in is an Ingress of another namespace.
func in(namespace string, ing *networkingv1.Ingress) *networkingv1.Ingress {
	ing.Namespace = namespace
	return ing
}

// TestFairShares: namespaces take turns, so that older Ingresses of one don't take away
// what others have. What no other namespace asks for is free for all.
func TestFairShares(t *testing.T) {
	g := newInstance(t)
	var rival []*networkingv1.Ingress
	for n := range 205 {
		rival = append(rival, in("rival", stepped(n, 30000+100*n)))
	}
	g.apply(false, in("one", stepped(1000, 20000)), in("two", stepped(1001, 21000)), in("two", stepped(1002, 22000)), in("three", stepped(1003, 30100)))
	g.apply(false, rival...)
	for number, want := range map[int]int64{1000: 20000, 1001: 21000, 1002: 22000, 1003: 30100, 0: 30000, 194: 49400, 195: 49400, 204: 49400} {
		if got := g.served(number); got != want {
			t.Errorf("Ingress %d is served %d, want %d", number, got, want)
		}
	}
	// Two namespaces that ask for more than there is share it equally.
	rival = nil
	for n := range 150 {
		rival = append(rival, in("other", stepped(2000+n, 60000+100*n)))
	}
	g.apply(false, rival...)
	counts := map[string]int{}
	for n := range 205 {
		if g.served(n) == int64(30000+100*n) {
			counts["rival"]++
		}
	}
	for n := range 150 {
		if g.served(2000+n) == int64(60000+100*n) {
			counts["other"]++
		}
	}
	if counts["rival"] < 97 || counts["rival"] > 98 || counts["other"] < 97 || counts["other"] > 98 || g.served(1002) != 22000 {
		t.Errorf("the shares are %v, and two is served %d", counts, g.served(1002))
	}
}

// TestProfilesFollowFromObjects: what is served has no memory of how the objects
// came.
func TestProfilesFollowFromObjects(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for range 2 {
		var last []*networkingv1.Ingress
		for n := range 500 {
			last = append(last, stepped(n, 1024+random.IntN(600)))
		}
		fresh, used := newInstance(t), newInstance(t)
		fresh.apply(false, last...)
		shuffled := slices.Clone(last)
		for range 3 {
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for _, part := range slices.Collect(slices.Chunk(shuffled, 50)) {
				var other []*networkingv1.Ingress
				for _, ing := range part {
					var number int
					fmt.Sscanf(ing.Name, "i%d", &number)
					other = append(other, stepped(number, random.IntN(2000)))
				}
				used.apply(random.IntN(4) == 0, other...)
			}
		}
		for _, part := range slices.Collect(slices.Chunk(shuffled, 20)) {
			used.apply(false, part...)
		}
		if diff := cmp.Diff(fresh.routes(), used.routes()); diff != "" {
			t.Fatalf("hosts (-at once +after changes):\n%.2000s", diff)
		}
		if diff := cmp.Diff(fresh.findings, used.findings); diff != "" {
			t.Fatalf("findings (-at once +after changes):\n%.2000s", diff)
		}
	}
}
