package dataplane_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const withHTTP3 = "use-http3: true"

// usersSecret has the user of password.
const usersSecret = "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n"

// always are keys for all pairs: without the last two, rules of tenants are refused.
var always = []string{withHTTP3, "allow-snippet-annotations: true", "annotations-risk-level: Critical"}

// pairs asks hosts that each stand for a guard and a bypass.
type pairs struct {
	instance *headgatetest.Instance
	record   *record
	versions []version
	sent     int
	// refusals is how many requests were refused since the namespace's expressions took too long.
	refusals int64
	// open is what became of the requests to the host of a bypass without a
	// guard, and control the first of them that a guard would have kept away.
	open    map[string][]outcome
	control map[string]int
}

// A version is one of HTTP.
type version struct {
	scheme string
	client *http.Client
}

// versions are those that an Instance with use-http3 speaks, in their order.
func versions(g *headgatetest.Instance) []version {
	list := []version{{"http", g.NewClient(false)}, {"https", g.NewClient(true)}}
	if g.HTTP3() {
		list = append(list, version{"https", g.NewHTTP3Client()})
	}
	return list
}

// A request goes a way over a version. Both count from 0.
type request struct {
	headgatetest.Request
	way, version int
}

func (r request) String() string {
	return fmt.Sprintf("%s %s over HTTP/%d", cmp.Or(r.Method, "GET"), r.Path, r.version+1)
}

// ask sends a request to a host. In what it says the host is HOST. On a slow machine hundreds of hosts
// with expressions may take more time than their namespace has, and be refused: then it asks again.
func (p *pairs) ask(t *testing.T, at, host string, r request, key http.Header) outcome {
	t.Helper()
	var got outcome
	headgatetest.Eventually(t, host+": its namespace has time for expressions", func() bool {
		got = p.askOnce(t, at, host, r, key)
		if got.status != http.StatusServiceUnavailable && got.status != http.StatusNotFound {
			return true
		}
		before := p.refusals
		p.refusals = p.instance.State().Refusals["regex"]["default"]
		return p.refusals == before
	})
	return got
}

func (p *pairs) askOnce(t *testing.T, at, host string, r request, key http.Header) outcome {
	t.Helper()
	p.sent++
	mark := fmt.Sprint(p.sent)
	send, over := r.Request, p.versions[r.version]
	send.Host, send.Scheme = at+host, over.scheme
	send.Header = http.Header{"X-Mark": {mark}}
	maps.Copy(send.Header, r.Header)
	maps.Copy(send.Header, key)
	send.Body = copied(r.Body)
	response, err := p.instance.Try(over.client, send)
	if err != nil {
		t.Fatalf("%s%s: %v: %v", at, host, r, err)
	}
	if !strings.HasPrefix(response.Proto, fmt.Sprintf("HTTP/%d.", r.version+1)) {
		t.Errorf("%s%s: %v: it went over %s", at, host, r, response.Proto)
	}
	return outcome{
		backend: p.record.of(mark), status: response.Status,
		location:  strings.ReplaceAll(response.Header.Get("Location"), host, "HOST"),
		origin:    response.Header.Get("Access-Control-Allow-Origin"),
		challenge: response.Header.Get("WWW-Authenticate"),
	}
}

// requests are all ways over each version.
func (p *pairs) requests() []request {
	var list []request
	for way := range ways {
		for version := range p.versions {
			list = append(list, request{ways[way], way, version})
		}
	}
	return list
}

// TestGuardsAndBypasses sends requests to a host for each pair of a guard and
// something that leads requests another way. Without the key none may reach a
// backend; with it the same becomes of them as without the guard. What a bypass
// does is shown at an unguarded host.
//
// Where a second Ingress stands beside the guarded one, each guard gets each
// request over each version of HTTP. For the other bypasses each two of guard, bypass and
// request meet.
func TestGuardsAndBypasses(t *testing.T) {
	t.Parallel()
	r := &record{seen: map[string]string{}}
	authService := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "ok" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	instance := headgatetest.Start(t, headgatetest.Options{Manifests: hostsOfPairs(t, authService) + headgatetest.Config(always...) +
		headgatetest.Service("app") + headgatetest.Endpoints("app", r.backend(t, "app")) +
		headgatetest.Service("next") + headgatetest.Endpoints("next", r.backend(t, "next")) +
		headgatetest.Service("page") + headgatetest.Endpoints("page", errorService(t)) +
		headgatetest.Service("silent") + headgatetest.Endpoints("silent")})
	p := &pairs{instance: instance, record: r, versions: versions(instance), open: map[string][]outcome{}, control: map[string]int{}}
	for number, name := range slices.Sorted(maps.Keys(bypasses)) {
		p.checkEffects(t, name)
		for i, request := range p.requests() {
			p.checkPairs(t, name, number, i, request)
		}
		if _, reached := p.control[name]; reached == bypasses[name].elsewhere {
			t.Errorf("%s: a request reached the backend of the host without a guard: %v", name, reached)
		}
		p.rest()
	}
	p.checkGlobal(t, authService)
	if said := r.of(""); said != "" {
		t.Errorf("a backend got what no request asked for: %.200s", said)
	}
}

// hostsOfPairs is a host for each pair, BYPASS.GUARD or BYPASS.GUARD-BROKEN, and
// one for each bypass alone, BYPASS.open.
func hostsOfPairs(t *testing.T, authService string) string {
	manifests := guardSecrets(headgatetest.NewKeyPair(t, "authority", "authority.test")) +
		strings.Replace(usersSecret, "{name: users}", "{name: users, namespace: other}", 1) +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: empty}\n"
	var secured []string
	add := func(name, host string, guard []string) {
		b := bypasses[name]
		if b.secured {
			secured = append(secured, host)
		}
		manifests += b.ingresses(host, authService, guard)
	}
	for name := range bypasses {
		add(name, name+".open", nil)
		for _, g := range guards {
			add(name, name+"."+g.name, g.annotations)
			for broken, annotations := range g.broken {
				add(name, name+"."+g.name+"-"+broken, annotations)
			}
		}
	}
	return manifests + headgatetest.TLSSecret("certificate", headgatetest.NewKeyPair(t, "pairs", secured...))
}

// checkEffects shows that a bypass does what it is there for, and that nothing
// else does.
func (p *pairs) checkEffects(t *testing.T, name string) {
	b := bypasses[name]
	for _, e := range b.effects {
		at, other := cmp.Or(e.at, b.asked), cmp.Or(e.unlike, "none")
		r := request{Request: e.Request}
		if got := p.ask(t, at, name+".open", r, nil).String(); got != e.want {
			t.Errorf("%s: %v: %s, want %s", name, r, got, e.want)
		}
		if got := p.ask(t, at, other+".open", r, nil).String(); got == e.want {
			t.Errorf("%s: %v: it is %s with the bypass %s too", name, r, got, other)
		}
	}
	if len(b.effects) == 0 && name != "none" {
		t.Errorf("%s: nothing shows that it works", name)
	}
}

// checkPairs sends the i-th request to the hosts of a bypass.
func (p *pairs) checkPairs(t *testing.T, name string, number, i int, r request) {
	t.Helper()
	b := bypasses[name]
	open := p.ask(t, b.asked, name+".open", r, nil)
	p.open[name] = append(p.open[name], open)
	if r.version == 2 && open != p.open[name][i-1] {
		t.Errorf("%s: %v: %s, and over HTTP/2 %s", name, r, open, p.open[name][i-1])
	}
	free := !open.reached() || b.leads(r.Path)
	if _, found := p.control[name]; !found && !free {
		p.control[name] = i
	}
	for which, g := range guards {
		if b.beside == nil && (!p.sparse(r) || (r.way+number+which)%3 != 0) {
			continue
		}
		host := name + "." + g.name
		if g.first {
			for _, wrong := range []http.Header{nil, g.wrong[i/2%len(g.wrong)]} {
				if got := p.ask(t, b.asked, host, r, wrong); !got.fitsFirst(open, http.StatusBadRequest, http.StatusForbidden) {
					t.Errorf("%s: %v, with %v: %s, and without the guard: %s", host, r, wrong, got, open)
				}
			}
			continue
		}
		if g.list && b.exempt && b.leads(r.Path) {
			// Its password would not be asked for either.
			for _, key := range []http.Header{nil, g.key} {
				if got := p.ask(t, b.asked, host, r, key); !got.fits(open, !open.reached(), http.StatusForbidden) {
					t.Errorf("%s: %v, with %v: %s, and without the guard: %s", host, r, key, got, open)
				}
			}
			continue
		}
		for _, wrong := range []http.Header{nil, g.wrong[r.way%len(g.wrong)]} {
			got := p.ask(t, b.asked, host, r, wrong)
			if !got.fits(open, free, cmp.Or(g.refusal, 401)) || free && !open.isDefault() && got != open {
				t.Errorf("%s: %v, with %v: %s, and without the guard: %s", host, r, wrong, got, open)
			}
			if !free && wrong == nil && !strings.HasPrefix(got.challenge, g.challenge) {
				t.Errorf("%s: %v: the client is asked for %q", host, r, got.challenge)
			}
		}
		if g.key != nil {
			if got := p.ask(t, b.asked, host, r, g.key); got != open {
				t.Errorf("%s: %v, with the key: %s, and without the guard: %s", host, r, got, open)
			}
		}
	}
	for _, g := range guards {
		p.checkBroken(t, name, g, number, i, r)
	}
}

// sparse reports whether a request is one of those by which each way is gone
// once, over the versions by turns.
func (p *pairs) sparse(r request) bool { return r.version == r.way/3%len(p.versions) }

// checkBroken sends the i-th request to the hosts of a bypass whose guard is
// broken, by turns with the key.
func (p *pairs) checkBroken(t *testing.T, name string, g guard, number, i int, r request) {
	t.Helper()
	b, open := bypasses[name], p.open[name][i]
	for broken := range g.broken {
		if all := slices.Contains(thorough, broken); all && (!p.sparse(r) || b.beside == nil && (r.way+number)%3 != 0) || !all && i%7 != 0 {
			continue
		}
		host := name + "." + g.name + "-" + broken
		var key http.Header
		if r.way/2%2 == 0 {
			key = g.key
		}
		got := p.ask(t, b.asked, host, r, key)
		if g.first && broken != "no-secret" {
			if !got.fitsFirst(open, http.StatusForbidden, http.StatusServiceUnavailable) {
				t.Errorf("%s: %v: %s, and without the guard: %s", host, r, got, open)
			}
			continue
		}
		// A www redirect alias answers before it is known whether its host's
		// routes are denied.
		if !got.fits(open, !open.reached() || b.leads(r.Path), 401, 500, 503) || name == "www-alias" && got != open {
			t.Errorf("%s: %v, with %v: %s, and without the guard: %s", host, r, key, got, open)
		}
	}
}

// checkGlobal has the hosts that were open guarded by a key of the ConfigMap:
// as it should be, with a service that is down, and with a bad value.
func (p *pairs) checkGlobal(t *testing.T, authService string) {
	names := slices.Sorted(maps.Keys(bypasses))
	for _, state := range []struct {
		url     string
		refusal int
		keys    []http.Header
	}{
		{"http://" + authService + "/check", 401, []http.Header{nil}},
		{"http://127.0.0.1:1/check", 500, []http.Header{nil, token}},
		{"http://" + authService + "/{x}", 503, []http.Header{nil, token}},
	} {
		p.instance.Apply(headgatetest.Config(slices.Concat(always, []string{"global-auth-url: " + state.url})...))
		for _, name := range names {
			for i, r := range p.requests() {
				if !p.sparse(r) && (state.refusal != 401 || bypasses[name].beside == nil) {
					continue
				}
				key, open := state.keys[r.way/2%len(state.keys)], p.open[name][i]
				free := !open.reached() || bypasses[name].exempt && bypasses[name].leads(r.Path)
				got := p.ask(t, bypasses[name].asked, name+".open", r, key)
				denied := state.refusal == 503 && name != "www-alias"
				if !got.fits(open, free, state.refusal) || free && !denied && !open.isDefault() && got != open {
					t.Errorf("%s: %v, with %v: %s with global-auth-url: %s, and without: %s", name, r, key, got, state.url, open)
				}
			}
			if state.refusal == 401 {
				p.checkControl(t, name, token)
			}
			p.rest()
		}
	}
	p.instance.Apply(headgatetest.Config(always...))
	for _, name := range names {
		p.checkControl(t, name, nil)
	}
}

// rest closes connections: each host has its own.
func (p *pairs) rest() {
	for _, v := range p.versions {
		v.client.CloseIdleConnections()
	}
}

// checkControl has a request that reached a backend reach it again.
func (p *pairs) checkControl(t *testing.T, name string, key http.Header) {
	i, ok := p.control[name]
	if !ok {
		return
	}
	r := p.requests()[i]
	if got, open := p.ask(t, bypasses[name].asked, name+".open", r, key), p.open[name][i]; got != open {
		t.Errorf("%s: %v, with %v: %s, and %s before", name, r, key, got, open)
	}
}
