package dataplane_test

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// snapshotOf builds what objects want.
func snapshotOf(t *testing.T, objects []metav1.Object) *snapshot.Snapshot {
	t.Helper()
	changes := make([]source.Change, len(objects))
	for i, o := range objects {
		changes[i] = source.Change{Object: o}
	}
	s, err := snapshot.Build(changes, snapshot.Settings{
		Store: store.Settings{
			IngressClass: "nginx", WatchWithoutClass: true, Classless: true, Scope: spec.Scope{DeepInspect: true},
			ConfigMap: types.NamespacedName{Namespace: "default", Name: "headgate"},
		},
		Features: all.Features(), AnnotationPrefix: "nginx.ingress.kubernetes.io",
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// staticOf is nginx.conf as a snapshot wants it.
func staticOf(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	desired := plan.NewDesired(feature.Directives(all.Features()))
	for key, model := range s.Models {
		if key.Kind == unit.Globals || key.Kind == unit.Host {
			desired.Set(unit.Of(model))
		}
	}
	static, _, err := desired.Next(nginxconf.Environment{Resources: feature.Resources(all.Features()), Directives: feature.Directives(all.Features())}, plan.Static{Dictionaries: nginxconf.FirstDictionaries(0, 0)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(static.Files[nginxconf.File])
}

// TestDynamicAnnotationsUnderLoad puts each annotation on a route, changes its
// value, and takes it away, while clients ask the route and a neighbour: by http
// and by https, on new connections and on old ones, with a password that all
// passwords' files have and as a stranger that is never let in. Values are those of
// golden cases, with what stands beside them there; keys come and go with them.
// A change that leaves nginx.conf as it is costs no reload. Each answer is the one from
// before the change or the one from after it, and once the change is served the
// one from after it.
func TestDynamicAnnotationsUnderLoad(t *testing.T) {
	headgatetest.Long(t)
	b := newLoadFixture(t)
	cases := slices.DeleteFunc(goldenCases(t), func(c featuretest.Case) bool { return b.denied(b.snapshot(t, c)) })
	var static, dynamic []string
	for _, name := range annotationNames() {
		// What a limit refuses depends on what came before: TestCountsStay and TestWindowIsChangedLive of
		// internal/feature/ratelimit changes them.
		if strings.HasPrefix(name, "limit-") && !strings.HasPrefix(name, "limit-rate") || strings.HasPrefix(name, "global-rate-limit") {
			continue
		}
		changes := 0
		for _, values := range b.courses(t, cases, name) {
			changes += b.run(t, name, values)
		}
		if changes == 0 {
			static = append(static, name)
		} else {
			dynamic = append(dynamic, name)
		}
	}
	b.end(t)
	t.Logf("%d annotations changed without a reload; static, or never taken: %v", len(dynamic), static)
	if len(dynamic) < len(static) {
		t.Error("hardly any annotation is dynamic")
	}
	idle := featuretest.Idle()
	for _, name := range static {
		if idle[name] == "" && !b.isStatic[name] && !slices.Contains(ofFastCGI, name) && !slices.Contains(ofClientCertificates, name) {
			t.Errorf("%s is not static, and nothing of it was changed: it needs a golden case that works without what is static", name)
		}
	}
	const fewest = 8
	if b.locked < fewest || b.checked < fewest {
		t.Errorf("passwords were asked for after %d changes, and a service after %d: want %d", b.locked, b.checked, fewest)
	}
}

// ofFastCGI are annotations that do something only beside a static one, with a backend that the
// fixture does not have: TestParametersChange of internal/feature/backendprotocol changes them.
var ofFastCGI = []string{"fastcgi-index", "fastcgi-params-configmap"}

// ofClientCertificates do something only beside auth-tls-secret, which costs the first host with it
// a reload: TestChangesReachKeptConnections of internal/feature/clientcert changes them.
var ofClientCertificates = []string{
	"auth-tls-error-page", "auth-tls-match-cn", "auth-tls-pass-certificate-to-upstream", "auth-tls-verify-client", "auth-tls-verify-depth",
}

// maxCourses bounds how many of an annotation's cases are gone through.
const maxCourses = 2

// courses are what an Ingress has one after the other: what stands beside an
// annotation, that with a value, with another one, and without again. Each begins
// and ends with nothing.
func (b *loadFixture) courses(t *testing.T, cases []featuretest.Case, name string) [][]featuretest.Case {
	t.Helper()
	var list [][]featuretest.Case
	for _, c := range featuretest.Beside(cases, name) {
		if _, ok := c.Annotations[name]; !ok || len(list) == maxCourses {
			continue
		}
		with := func(value string) featuretest.Case {
			other := c
			other.Annotations = maps.Clone(c.Annotations)
			other.Annotations[name] = value
			return other
		}
		without := with("")
		delete(without.Annotations, name)
		course := []featuretest.Case{without, c}
		for _, o := range cases {
			value, ok := o.Annotations[name]
			if ok && value != c.Annotations[name] && !b.denied(b.snapshot(t, with(value))) {
				course = append(course, with(value))
				break
			}
		}
		list = append(list, append(course, without, featuretest.Case{}))
	}
	return list
}

// A loadFixture is a route and a neighbour under load.
type loadFixture struct {
	g           *headgatetest.Instance
	authService string
	plain       string // nginx.conf without annotations
	isStatic    map[string]bool
	load        *load

	// locked and checked are how many changes left the route with a password, and
	// with a service that is asked.
	locked, checked int

	mu sync.Mutex
	// steps are the statuses that are right while a change is made, and then those
	// that are right until the next one, by client.
	steps []map[string][]int
	asked []answered
	count map[string]int // requests that ended, by client
}

// answered is an answer, with the steps in which it was asked for and came.
type answered struct {
	client      string
	status      int
	from, until int
}

const routeHost, neighbourHost = "route.test", "neighbour.test"

func newLoadFixture(t *testing.T) *loadFixture {
	t.Helper()
	one := headgatetest.StartEcho(t, "one")
	_, port, err := net.SplitHostPort(one)
	if err != nil {
		t.Fatal(err)
	}
	// The route's Service has an address of its own, beside that of its endpoint.
	service := "---\nkind: Service\napiVersion: v1\nmetadata: {name: route}\n" +
		"spec: {clusterIP: 127.0.0.1, ports: [{name: http, port: " + port + "}]}\n"
	endpoint := headgatetest.StartEchoAt(t, "one", "127.0.0.2:"+port)
	b := &loadFixture{isStatic: map[string]bool{}, count: map[string]int{}}
	b.authService = headgatetest.StartBackend(t, http.HandlerFunc(authService))
	b.g = headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Collector: true, Manifests: service + headgatetest.Endpoints("route", endpoint) + served("rest", one) +
		served("neighbour", one) + headgatetest.Ingress("neighbour", neighbourHost, "/", "neighbour")})
	b.g.ApplyObjects(b.objects(t, featuretest.Case{})...)
	b.plain = staticOf(t, b.snapshot(t, featuretest.Case{}))
	b.steps = []map[string][]int{b.now()}
	b.load = startLoad(t, len(clients), b.client)
	return b
}

// objects are the route's Ingress with a case's annotations, one that answers
// if that is a canary, the options, and what the case refers to.
func (b *loadFixture) objects(t *testing.T, c featuretest.Case) []metav1.Object {
	t.Helper()
	route := annotated(t, "route", routeHost, "/mine", "route", localAuthService(b.authService, c.Annotations))
	route.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "http"}
	rest := annotated(t, "rest", routeHost, "/", "rest", nil)
	paths := &rest.Spec.Rules[0].HTTP.Paths
	*paths = append(*paths, networkingv1.HTTPIngressPath{Path: "/mine", PathType: (*paths)[0].PathType, Backend: (*paths)[0].Backend})
	route.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	rest.CreationTimestamp = metav1.NewTime(time.Unix(2, 0))
	// Snippets are allowed throughout, since that key changes nginx.conf; what they say does not.
	keys := map[string]string{"allow-snippet-annotations": "true"}
	maps.Copy(keys, localAuthService(b.authService, c.Keys))
	c.Keys = keys
	objects := []metav1.Object{route, rest}
	for _, object := range c.All() {
		if secret, ok := object.(*corev1.Secret); ok {
			object = withMember(secret)
		}
		objects = append(objects, object)
	}
	return objects
}

// snapshot is what the fixture with a case wants.
func (b *loadFixture) snapshot(t *testing.T, c featuretest.Case) *snapshot.Snapshot {
	t.Helper()
	return snapshotOf(t, b.objects(t, c))
}

// denied reports whether the route answers 503, as its annotations ask for.
func (b *loadFixture) denied(s *snapshot.Snapshot) bool {
	host := s.Models[unit.Host.Key(routeHost)].(model.Host)
	return slices.ContainsFunc(host.Routes, func(r model.Route) bool { return r.Denied })
}

// run takes the route through a course, and returns how many changes of the
// annotation were pushed. Cases that want another nginx.conf are left out.
func (b *loadFixture) run(t *testing.T, name string, course []featuretest.Case) (changes int) {
	t.Helper()
	before, without := "", staticOf(t, b.snapshot(t, course[0]))
	for _, c := range course {
		s := b.snapshot(t, c)
		static, value := staticOf(t, s), c.Annotations[name]
		if value != "" && static != without {
			b.isStatic[name] = true
		}
		if static != b.plain {
			continue
		}
		if b.change(t, name, c, b.denied(s)) && before != value {
			changes++
		}
		before = value
	}
	return changes
}

// change has the route's Ingress as in a case, waits until every client has asked
// after that, and reports whether anything was pushed.
func (b *loadFixture) change(t *testing.T, name string, c featuretest.Case, denied bool) (pushed bool) {
	t.Helper()
	b.mu.Lock()
	last := b.steps[len(b.steps)-1]
	step := maps.Clone(last)
	b.steps = append(b.steps, step)
	b.mu.Unlock()
	before, reloads := counts(b.g), b.g.Value(b.g.Metrics.Reloads)
	b.g.ApplyObjects(b.objects(t, c)...)
	pushed = !maps.Equal(before, counts(b.g))
	after := b.now()
	b.mu.Lock()
	for client, right := range after {
		step[client] = append(slices.Clone(last[client]), right...)
	}
	b.steps = append(b.steps, after)
	b.mu.Unlock()
	for client, right := range after {
		if right[0] >= http.StatusInternalServerError && !denied {
			t.Errorf("%s: %q is answered %d by %s", name, c.Annotations, right[0], client)
		}
	}
	if !denied {
		b.guarded(t, c, after)
	}
	b.wait(t)
	if n := b.g.Value(b.g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%s: %q cost %d reloads", name, c.Annotations, n)
	}
	return pushed
}

// wait waits until each client has asked once more, from start to end.
func (b *loadFixture) wait(t *testing.T) {
	t.Helper()
	counts := func() map[string]int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return maps.Clone(b.count)
	}
	before := counts()
	headgatetest.Eventually(t, "all clients asked", func() bool {
		now := counts()
		return !slices.ContainsFunc(clients, func(c string) bool { return now[c] < before[c]+2 })
	})
}

// end ends the load and checks the answers.
func (b *loadFixture) end(t *testing.T) {
	t.Helper()
	b.load.wantNoneWrong(t, len(clients)*len(b.steps))
	wrong := 0
	for _, a := range b.asked {
		right := slices.ContainsFunc(b.steps[a.from:a.until+1], func(step map[string][]int) bool {
			return slices.Contains(step[a.client], a.status)
		})
		if !right {
			if wrong++; wrong < 5 {
				t.Errorf("step %d: %s answered %d, right are %v", a.until, a.client, a.status, b.steps[a.from:a.until+1])
			}
		}
	}
	t.Logf("%d changes, %d with a password and %d with a service; %d answers, %d of them wrong", len(b.steps)/2, b.locked, b.checked, len(b.asked), wrong)
}
