package dataplane_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// annotationNames are those of all features.
func annotationNames() []string {
	var names []string
	for _, s := range feature.AllSettings(all.Features()) {
		if name := s.Spec().Annotation; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// goldenCases are those of all features.
func goldenCases(t *testing.T) []featuretest.Case {
	t.Helper()
	return featuretest.Cases(t, "../../internal/feature", all.Features())
}

// annotated is an Ingress as headgatetest.Ingress makes it, with annotations that
// may hold anything.
func annotated(t *testing.T, name, host, path, service string, annotations map[string]string) *networkingv1.Ingress {
	t.Helper()
	ing := headgatetest.Decode(t, headgatetest.Ingress(name, host, path, service))[0].(*networkingv1.Ingress)
	ing.Annotations = map[string]string{}
	for name, value := range annotations {
		ing.Annotations["nginx.ingress.kubernetes.io/"+name] = value
	}
	return ing
}

// localAuthService replaces the auth services that golden cases name, and that do
// not exist, by one of this machine. The key of cached answers then names the
// client, since the service's answer depends on it.
func localAuthService(authService string, values map[string]string) map[string]string {
	out := maps.Clone(values)
	for _, name := range []string{"auth-url", "global-auth-url"} {
		if url := out[name]; url != "" {
			out[name] = fmt.Sprintf("http://%s/%d", authService, len(url))
		}
	}
	for _, name := range []string{"auth-cache-key", "global-auth-cache-key"} {
		if key := out[name]; key != "" && !strings.Contains(key, "$http_authorization") {
			out[name] = key + "$http_authorization"
		}
	}
	return out
}

// TestNoWayIntoNginx gives a host for each annotation hostile values instead
// of a good one. Other hosts have the good one, and none, so that NGINX knows
// their profiles. It is not reloaded, no Lua fails, no worker ends, and a
// neighbour's unit and answers stay the same to the byte.
//
// Each annotation gets every seventh value, from another one on than the
// annotation before it, so that all values meet some. A semicolon, a NUL and 64
// KiB meet each.
func TestNoWayIntoNginx(t *testing.T) {
	t.Parallel()
	one, neighbour := startWithoutFastCGI(t), headgatetest.StartEcho(t, "one")
	fixture := &hostileFixture{
		authService: headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
		statuses:    map[int]int{}, tried: map[int]bool{},
	}
	fixture.g = headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: served("one", one) + served("neighbour", neighbour) +
		headgatetest.Ingress("neighbour", "neighbour.test", "/", "neighbour")})
	groups := map[string]map[string]featuretest.Case{}
	cases := goldenCases(t)
	for _, name := range annotationNames() {
		c := featuretest.Beside(cases, name)[0]
		keys := fmt.Sprint(c.Keys)
		if groups[keys] == nil {
			groups[keys] = map[string]featuretest.Case{}
		}
		groups[keys][name] = c
	}
	for _, keys := range slices.Sorted(maps.Keys(groups)) {
		fixture.try(t, groups[keys])
	}
	for _, bad := range []string{"runtime error", "failed to run", "exited on signal", "[emerg]", "[alert]"} {
		if log := fixture.g.Log.String(); strings.Contains(log, bad) {
			_, after, _ := strings.Cut(log, bad)
			t.Errorf("the log has %q: %.300s", bad, after)
		}
	}
	for i, value := range featuretest.Hostile("good") {
		if !fixture.tried[i] {
			t.Errorf("no annotation met %.30q", value)
		}
	}
	t.Logf("%d groups of annotations; answers by status: %v", len(groups), fixture.statuses)
}

// startWithoutFastCGI runs a backend by HTTP that ends connections which begin as FastCGI. Go's
// server waits for the end of their first line.
func startWithoutFastCGI(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Listener = withoutFastCGI{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

type withoutFastCGI struct{ net.Listener }

func (l withoutFastCGI) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	return &firstByte{Conn: connection}, err
}

// firstByte is a connection that ends where its first byte is FastCGI's.
type firstByte struct {
	net.Conn
	began bool
}

func (c *firstByte) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.began && b[0] == 1 {
		return 0, io.EOF
	}
	c.began = c.began || n > 0
	return n, err
}

// anyName are good values of proxy-ssl-name: with another name, a route has a profile of its
// own, which takes a reload.
var anyName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// A hostileFixture is where hostile values are tried.
type hostileFixture struct {
	g           *headgatetest.Instance
	authService string
	statuses    map[int]int
	// tried are values by their place in featuretest.Hostile.
	tried map[int]bool
}

// ingress is one of a host of its name.
func (b *hostileFixture) ingress(t *testing.T, name string, annotations map[string]string) metav1.Object {
	t.Helper()
	return annotated(t, name, name+".test", "/", "one", annotations)
}

// try tries annotations whose cases have the same keys.
func (b *hostileFixture) try(t *testing.T, group map[string]featuretest.Case) {
	t.Helper()
	var first []metav1.Object
	courses := map[string][]string{}
	rounds := 0
	for _, name := range slices.Sorted(maps.Keys(group)) {
		c := group[name]
		c.Annotations, c.Keys = localAuthService(b.authService, c.Annotations), localAuthService(b.authService, c.Keys)
		group[name] = c
		without := maps.Clone(c.Annotations)
		delete(without, name)
		first = append(first, c.All()...)
		first = append(first, b.ingress(t, "good-"+name, c.Annotations), b.ingress(t, "without-"+name, without))
		courses[name] = slices.DeleteFunc(b.course(c.Annotations[name], slices.Index(annotationNames(), name)), func(value string) bool {
			return name == "proxy-ssl-name" && anyName.MatchString(value)
		})
		rounds = max(rounds, len(courses[name]))
	}
	b.g.ApplyObjects(first...)
	before, reloads := seen(t, b.g), b.g.Value(b.g.Metrics.Reloads)
	for round := range rounds {
		var bad []metav1.Object
		for name, c := range group {
			annotations := maps.Clone(c.Annotations)
			annotations[name] = courses[name][round%len(courses[name])]
			bad = append(bad, b.ingress(t, "bad-"+name, annotations))
		}
		b.g.ApplyObjects(bad...)
		for name := range group {
			b.statuses[b.g.Get("bad-"+name+".test", "/x").Status]++
		}
		if now := seen(t, b.g); now != before {
			t.Fatalf("round %d changes what is the neighbour's or shared, from\n%s\nto\n%s", round, before, now)
		}
	}
	if n := b.g.Value(b.g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
}

// course are the hostile values that an annotation gets, one a round.
func (b *hostileFixture) course(good string, number int) []string {
	const seventh = 7
	course := []string{good + "; return 200;" + good, good + "\x00" + good, good + strings.Repeat("a", 64<<10)}
	values := featuretest.Hostile(good)
	for i := number % seventh; i < len(values); i += seventh {
		course = append(course, values[i])
		if good != "" {
			b.tried[i] = true
		}
	}
	return course
}

// seen is what tenants must not change: nginx.conf, the worker, and a
// neighbour's unit and answer.
func seen(t *testing.T, g *headgatetest.Instance) string {
	t.Helper()
	conf, err := os.ReadFile(g.RunDir.Conf())
	if err != nil {
		t.Fatal(err)
	}
	host, err := g.Client.Unit(t.Context(), unit.Host.Key("neighbour.test"))
	if err != nil {
		t.Fatal(err)
	}
	r := g.Do(headgatetest.Request{Host: "neighbour.test", Path: "/x?y=z", Header: http.Header{"X-Request-Id": {"fixed"}}})
	r.Header.Del("Date")
	return fmt.Sprintf("%s\n%d\n%s\n%d %v %s", conf, g.State().PID, host.Payload, r.Status, r.Header, r.Body)
}
