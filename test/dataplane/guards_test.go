package dataplane_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/headgatetest"
)

// usersSecret has the user of password.
const usersSecret = "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n"

// A record notes by their marks what backends were asked.
type record struct {
	mu   sync.Mutex
	seen map[string]string
}

// backend is a backend whose requests are noted.
func (r *record) backend(t *testing.T, name string) string {
	return headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		said := name + " " + cleaned(request.RequestURI)
		if len(request.TransferEncoding) > 0 {
			said += " chunked"
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen[request.Header.Get("X-Mark")] += said
	}))
}

// cleaned is a target without "..": beside a guard that is what backends are
// asked for.
func cleaned(target string) string {
	u, err := url.ParseRequestURI(target)
	if err != nil || !slices.Contains(strings.Split(u.Path, "/"), "..") {
		return target
	}
	u.Path, u.RawPath = path.Clean(u.Path), ""
	return u.RequestURI()
}

func (r *record) of(mark string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[mark]
}

// An outcome is what became of a request.
type outcome struct {
	// backend is which one got it, and what for. It is empty if none did.
	backend          string
	status           int
	location, origin string
	challenge        string
}

// isDefault reports whether the built-in default backend may have answered: a
// guard of the host's first Ingress comes before it.
func (o outcome) isDefault() bool { return !o.reached() && o.status == http.StatusNotFound }

func (o outcome) reached() bool { return o.backend != "" }

// fits reports whether it may be the outcome behind a guard, where open is the
// one without. free: no guard is between client and backend.
func (o outcome) fits(open outcome, free bool, refusals ...int) bool {
	if o == open {
		return free
	}
	return !o.reached() && slices.Contains(refusals, o.status)
}

func (o outcome) String() string {
	text := cmp.Or(o.backend, strings.TrimSpace(fmt.Sprint(o.status, " ", o.location)))
	if o.origin != "" {
		text += ", for " + o.origin
	}
	return text
}

// pairs asks hosts that each stand for a guard and a bypass.
type pairs struct {
	instance      *headgatetest.Instance
	record        *record
	plain, secure *http.Client
	sent          int
	// open is what became of the requests to the host of a bypass without a
	// guard, and control the first of them that a guard would have kept away.
	open    map[string][]outcome
	control map[string]int
}

// A request goes a way, over one of the protocols.
type request struct {
	headgatetest.Request
	http2 bool
}

func (r request) String() string {
	return fmt.Sprintf("%s %s, HTTP/2 %v", cmp.Or(r.Method, "GET"), r.Path, r.http2)
}

// ask sends a request to a host. In what it says the host is HOST.
func (p *pairs) ask(t *testing.T, at, host string, r request, key http.Header) outcome {
	t.Helper()
	p.sent++
	mark := fmt.Sprint(p.sent)
	send, client := r.Request, p.plain
	send.Host = at + host
	if r.http2 {
		send.Scheme, client = "https", p.secure
	}
	send.Header = http.Header{"X-Mark": {mark}}
	maps.Copy(send.Header, r.Header)
	maps.Copy(send.Header, key)
	switch body := r.Body.(type) {
	case *strings.Reader:
		again := *body
		send.Body = &again
	case unsized:
		again := *body.Reader
		send.Body = unsized{&again}
	}
	response, err := p.instance.Try(client, send)
	if err != nil {
		t.Fatalf("%s%s: %v: %v", at, host, r, err)
	}
	return outcome{
		backend: p.record.of(mark), status: response.Status,
		location:  strings.ReplaceAll(response.Header.Get("Location"), host, "HOST"),
		origin:    response.Header.Get("Access-Control-Allow-Origin"),
		challenge: response.Header.Get("WWW-Authenticate"),
	}
}

// requests are all ways over both protocols.
func requests() []request {
	var list []request
	for _, way := range ways {
		list = append(list, request{way, false}, request{way, true})
	}
	return list
}

// TestGuardsAndBypasses sends requests to a host for each pair of a guard and
// something that leads requests another way. Without the key none may reach a
// backend; with it the same becomes of them as without the guard. What a bypass
// does is shown at an unguarded host.
//
// Where a second Ingress stands beside the guarded one, each guard gets each
// request over both protocols. For the other bypasses each two of guard, bypass and
// request meet.
func TestGuardsAndBypasses(t *testing.T) {
	t.Parallel()
	r := &record{seen: map[string]string{}}
	authService := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "ok" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	instance := headgatetest.Start(t, headgatetest.Options{Manifests: hostsOfPairs(t, authService) +
		headgatetest.Service("app") + headgatetest.Endpoints("app", r.backend(t, "app")) +
		headgatetest.Service("next") + headgatetest.Endpoints("next", r.backend(t, "next")) +
		headgatetest.Service("silent") + headgatetest.Endpoints("silent")})
	p := &pairs{instance: instance, record: r, plain: instance.NewClient(false), secure: instance.NewClient(true), open: map[string][]outcome{}, control: map[string]int{}}
	for number, name := range slices.Sorted(maps.Keys(bypasses)) {
		p.checkEffects(t, name)
		for i, request := range requests() {
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
	manifests := usersSecret + strings.Replace(usersSecret, "{name: users}", "{name: users, namespace: other}", 1) +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: digests}\nstringData: {auth: 'user:here:b1a95a9b8a0d8f2dd2c5e3a4f1c3dd1f'}\n" +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: empty}\n"
	var secured []string
	add := func(name, host string, guard []string) {
		b := bypasses[name]
		var annotations []string
		for _, a := range slices.Concat(guard, b.annotations) {
			annotations = append(annotations, strings.NewReplacer("ADDRESS", authService, "HOST", host).Replace(a))
		}
		ingress := headgatetest.Ingress(host, b.under+host, cmp.Or(b.path, "/"), cmp.Or(b.service, "app"), annotations...)
		if b.secured {
			secured = append(secured, host)
			ingress = headgatetest.WithTLS(ingress, "certificate "+host)
		}
		manifests += ingress
		if b.beside != nil {
			manifests += b.beside(host, annotations)
		}
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
	free := !open.reached() || b.leads(r.Path)
	if _, found := p.control[name]; !found && !free {
		p.control[name] = i
	}
	for which, g := range guards {
		if b.beside == nil && (!sparse(i) || (i/2+number+which)%3 != 0) {
			continue
		}
		host := name + "." + g.name
		if g.list && b.exempt && b.leads(r.Path) {
			// Its password would not be asked for either.
			for _, key := range []http.Header{nil, g.key} {
				if got := p.ask(t, b.asked, host, r, key); !got.fits(open, !open.reached(), http.StatusForbidden) {
					t.Errorf("%s: %v, with %v: %s, and without the guard: %s", host, r, key, got, open)
				}
			}
			continue
		}
		for _, wrong := range []http.Header{nil, g.wrong[i/2%len(g.wrong)]} {
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

// sparse reports whether the i-th of all requests is one of those by which each
// way is gone once, over the protocols by turns.
func sparse(i int) bool { return i%2 == i/2%2 }

// checkBroken sends the i-th request to the hosts of a bypass whose guard is
// broken, by turns with the key.
func (p *pairs) checkBroken(t *testing.T, name string, g guard, number, i int, r request) {
	t.Helper()
	b, open := bypasses[name], p.open[name][i]
	for broken := range g.broken {
		if all := slices.Contains(thorough, broken); all && (!sparse(i) || b.beside == nil && (i/2+number)%3 != 0) || !all && i%9 != 0 {
			continue
		}
		host := name + "." + g.name + "-" + broken
		var key http.Header
		if i/4%2 == 0 {
			key = g.key
		}
		got := p.ask(t, b.asked, host, r, key)
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
		p.instance.Apply(headgatetest.Config("global-auth-url: " + state.url))
		for _, name := range names {
			for i, r := range requests() {
				if !sparse(i) && (state.refusal != 401 || bypasses[name].beside == nil) {
					continue
				}
				key, open := state.keys[i/4%len(state.keys)], p.open[name][i]
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
	p.instance.Delete(headgatetest.Config())
	for _, name := range names {
		p.checkControl(t, name, nil)
	}
}

// rest closes connections: each host has its own.
func (p *pairs) rest() {
	p.plain.CloseIdleConnections()
	p.secure.CloseIdleConnections()
}

// checkControl has a request that reached a backend reach it again.
func (p *pairs) checkControl(t *testing.T, name string, key http.Header) {
	i, ok := p.control[name]
	if !ok {
		return
	}
	if got, open := p.ask(t, bypasses[name].asked, name+".open", requests()[i], key), p.open[name][i]; got != open {
		t.Errorf("%s: %v, with %v: %s, and %s before", name, requests()[i], key, got, open)
	}
}

// TestTargetsOfGuardedHosts sends targets that can be read as two paths. The
// backend gets them as the client wrote them where every path has the same
// guard, and no other service decides by the path.
func TestTargetsOfGuardedHosts(t *testing.T) {
	t.Parallel()
	authService := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	basic := []string{"auth-type: basic", "auth-secret: users"}
	instance := headgatetest.Start(t, headgatetest.Options{Manifests: usersSecret + headgatetest.Service("app") + headgatetest.Endpoints("app", headgatetest.StartEcho(t, "app")) +
		headgatetest.Ingress("one", "one.test", "/", "app", basic...) +
		headgatetest.Ingress("two", "two.test", "/", "app", basic...) + headgatetest.Ingress("two-b", "two.test", "/b", "app", basic...) +
		headgatetest.Ingress("below", "below.test", "/a", "app", basic...) +
		headgatetest.Ingress("open", "open.test", "/", "app", basic...) + headgatetest.Ingress("open-b", "open.test", "/b", "app") +
		headgatetest.Ingress("acme", "acme.test", "/", "app", basic...) + headgatetest.Ingress("acme-b", "acme.test", challenges, "app", basic...) +
		headgatetest.Ingress("realm", "realm.test", "/", "app", basic...) + headgatetest.Ingress("realm-b", "realm.test", "/b", "app", append(basic, "auth-realm: other")...) +
		headgatetest.Ingress("denied", "denied.test", "/", "app") + headgatetest.Ingress("denied-b", "denied.test", "/b", "app", "auth-type: none") +
		headgatetest.Ingress("any", "any.test", "/", "app", slices.Concat(basic, []string{"satisfy: any"})...) + headgatetest.Ingress("any-b", "any.test", "/b", "app", basic...) +
		headgatetest.Ingress("asked", "asked.test", "/", "app", "auth-url: http://"+authService+"/check"),
	})
	const target = "/a%2Fb//c/../d?x=%2F"
	for host, want := range map[string]string{
		"one.test": target, "two.test": target, "below.test": target,
		"open.test": "/a/b/d?x=%2F", "acme.test": "/a/b/d?x=%2F", "realm.test": "/a/b/d?x=%2F",
		"denied.test": "/a/b/d?x=%2F", "any.test": "/a/b/d?x=%2F", "asked.test": "/a/b/d?x=%2F",
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := instance.Do(headgatetest.Request{Host: host, Path: target, Scheme: scheme, HTTP2: http2, Header: password}).WantStatus(t, 200)
			if r.Echo.Target != want {
				t.Errorf("%s, %s: the backend was asked for %s, want %s", host, r.Proto, r.Echo.Target, want)
			}
			// What can be read one way only goes on as it is on every host.
			const plain = "/a%2Fb//%64?x"
			r = instance.Do(headgatetest.Request{Host: host, Path: plain, Scheme: scheme, HTTP2: http2, Header: password}).WantStatus(t, 200)
			if r.Echo.Target != plain {
				t.Errorf("%s, %s: the backend was asked for %s, want %s", host, r.Proto, r.Echo.Target, plain)
			}
		})
	}
	instance.Do(headgatetest.Request{Host: "one.test", Path: target}).WantStatus(t, 401)
	instance.Do(headgatetest.Request{Host: "one.test", Path: "/a/..;/b", Header: password}).WantStatus(t, 200)
	instance.Do(headgatetest.Request{Host: "open.test", Path: "/x/../a/..;/b", Header: password}).WantStatus(t, 400)
}
