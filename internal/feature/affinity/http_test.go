package affinity_test

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A fleet is a backend of several endpoints, "fleet" on port 80.
type fleet struct {
	g         *headgatetest.Instance
	addresses []string
	// statuses are what an endpoint answers if it is not 0.
	statuses []atomic.Int64
}

const host = "fleet.test"

func newFleet(t *testing.T, size int, more string, annotations ...string) *fleet {
	f := &fleet{statuses: make([]atomic.Int64, size)}
	for i := range size {
		f.addresses = append(f.addresses, headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Endpoint", f.addresses[i])
			if sent := r.Header.Get("Cookie"); len(sent) < 1000 {
				w.Header().Set("X-Cookie", sent)
			}
			for _, cookie := range r.Header["X-Set"] {
				w.Header().Add("Set-Cookie", cookie)
			}
			if status := int(f.statuses[i].Load()); status != 0 {
				w.WriteHeader(status)
			}
		})))
	}
	f.g = headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("fleet") + headgatetest.Endpoints("fleet", f.addresses...) +
		headgatetest.Ingress("web", host, "/", "fleet", append([]string{"affinity: cookie"}, annotations...)...) + more})
	return f
}

func (f *fleet) annotate(annotations ...string) {
	f.g.Apply(headgatetest.Ingress("web", host, "/", "fleet", append([]string{"affinity: cookie"}, annotations...)...))
}

// ask sends a request with a Cookie header, none if it is empty, and returns the endpoint
// that answered.
func (f *fleet) ask(t *testing.T, cookie string) (endpoint string, r headgatetest.Response) {
	t.Helper()
	r = f.g.Do(headgatetest.Request{Host: host, Header: cookies(cookie)}).WantStatus(t, 200)
	return r.Header.Get("X-Endpoint"), r
}

func cookies(cookie string) http.Header {
	if cookie == "" {
		return nil
	}
	return http.Header{"Cookie": {cookie}}
}

// sent is the "name=value" that an answer sets, empty for none, and its attributes.
func sent(t *testing.T, r headgatetest.Response) (cookie string, attributes []string) {
	t.Helper()
	lines := r.Header.Values("Set-Cookie")
	if len(lines) == 0 {
		return "", nil
	}
	if len(lines) > 1 {
		t.Errorf("%d cookies: %q", len(lines), lines)
	}
	parts := strings.Split(lines[0], "; ")
	slices.Sort(parts[1:])
	return parts[0], parts[1:]
}

func sum(text string) string {
	hash := md5.Sum([]byte(text))
	return hex.EncodeToString(hash[:])
}

// label is the name that ingress-nginx gives to a backend, and mark what its cookies have of it.
func label(service string) string { return "default-" + service + "-80" }
func mark(service string) string  { return sum(sum(label(service)) + label(service)) }

// place is where the consistent hash of ingress-nginx, OpenResty's, puts a key.
func place(key string, endpoints []string) (found string) {
	hash := crc32.ChecksumIEEE([]byte(key))
	nearest := uint64(1) << 33
	for _, endpoint := range endpoints {
		point := uint32(0)
		for range 160 {
			point = crc32.Update(crc32.ChecksumIEEE([]byte(endpoint)), crc32.IEEETable, binary.LittleEndian.AppendUint32(nil, point))
			distance := uint64(point)
			if point < hash {
				distance += 1 << 32
			}
			if distance < nearest {
				nearest, found = distance, endpoint
			}
		}
	}
	return found
}

// A cookie of ingress-nginx leads to the same endpoint as there, in both modes, and is not
// replaced.
func TestCookiesOfIngressNginx(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 7, "")
	check := func(cookie, want string) {
		t.Helper()
		at, r := f.ask(t, cookie)
		if at != want {
			t.Errorf("%s leads to %s, want %s", cookie, at, want)
		}
		if set := r.Header.Values("Set-Cookie"); len(set) > 0 {
			t.Errorf("%s is answered with %q", cookie, set)
		}
		if got := r.Header.Get("X-Cookie"); got != cookie {
			t.Errorf("the backend got the cookie %q, want %q", got, cookie)
		}
	}
	for i := range 40 {
		key := fmt.Sprintf("17%08d.%d.%d.%d", i*7919, i, 40+i, 100000+i*i)
		check("INGRESSCOOKIE="+key+"|"+mark("fleet"), place(key, f.addresses))
	}
	// There, the key counts, and not what stands behind it.
	check("INGRESSCOOKIE=17.2.3", place("17.2.3", f.addresses))
	check("INGRESSCOOKIE=17.2.3|"+mark("other"), place("17.2.3", f.addresses))

	f.annotate("affinity-mode: persistent", "session-cookie-name: stick")
	for _, endpoint := range f.addresses {
		check("stick="+sum(label("fleet")+endpoint)+"|"+mark("fleet"), endpoint)
	}
}

// A session stays at its endpoint, in all workers and over all protocols, and only the first
// response sets the cookie. A new endpoint takes only sessions in balanced mode, and only its
// share; the sessions of an endpoint that is gone move.
func TestSessionsStay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, "")
	for _, mode := range []string{"balanced", "persistent"} {
		f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
		f.annotate("affinity-mode: " + mode)
		f.g.Delete("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-5}\n")
		sessions, places := map[string]string{}, map[string]bool{}
		for range 60 {
			at, r := f.ask(t, "")
			cookie, _ := sent(t, r)
			if !strings.HasPrefix(cookie, "INGRESSCOOKIE=") || !strings.HasSuffix(cookie, "|"+mark("fleet")) {
				t.Fatalf("%s: the cookie %q", mode, cookie)
			}
			sessions[cookie], places[at] = at, true
		}
		// They are at random, so one endpoint may have none.
		if len(places) < 4 {
			t.Errorf("%s: 60 sessions are at %d of 5 endpoints", mode, len(places))
		}
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			for cookie, want := range sessions {
				r := f.g.Do(headgatetest.Request{Host: host, Path: "/x", Scheme: scheme, HTTP2: http2, Header: cookies("a=1; " + cookie + "; b=2")}).WantStatus(t, 200)
				if at := r.Header.Get("X-Endpoint"); at != want {
					t.Errorf("%s: a session moved from %s to %s", mode, want, at)
				}
				if again, _ := sent(t, r); again != "" {
					t.Errorf("%s: the cookie is set again: %s", mode, again)
				}
			}
		})
		moved := func(change string, may func(from, to string) bool) {
			t.Helper()
			for cookie, from := range sessions {
				if at, _ := f.ask(t, cookie); at != from && !may(from, at) {
					t.Errorf("%s, %s: a session moved from %s to %s", mode, change, from, at)
				}
			}
		}
		f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
		moved("one more", func(_, to string) bool { return mode == "balanced" && to == f.addresses[5] })
		f.g.Delete("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-0}\n")
		moved("one less", func(from, to string) bool {
			return from == f.addresses[0] || mode == "balanced" && to == f.addresses[5]
		})
	}
	// In persistent mode, a session of an endpoint that is gone gets a new cookie.
	_, r := f.ask(t, "INGRESSCOOKIE="+sum(label("fleet")+f.addresses[0])+"|"+mark("fleet"))
	if cookie, _ := sent(t, r); !strings.HasSuffix(cookie, "|"+mark("fleet")) {
		t.Errorf("a session of an endpoint that is gone gets the cookie %q", cookie)
	}
}

// Of several cookies of the name, the last one of this backend counts, else the last one. What
// is not a cookie of the name does not count, and nothing that a client sends is an error.
func TestWhichCookieCounts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 7, "", "session-cookie-name: s")
	own := func(key string) string { return "s=" + key + "|" + mark("fleet") }
	for _, c := range []struct{ header, key string }{
		{own("a") + "; " + own("b"), "b"}, {own("b") + "; s=x|" + mark("other"), "b"}, {"s=x|" + mark("other") + "; " + own("b"), "b"},
		{own("b") + "; s=x", "b"}, {"s=x; s=y", "y"}, {own("c") + ";s=", "c"}, {"xs=q; " + own("d") + "; ss=" + own("e"), "d"},
		{";;" + own("f"), "f"}, {own("g") + " ; h=1", "g"}, {"x=\"" + own("h") + "\"; " + own("i"), "i"}, {"s=\xff\xfe", "\xff\xfe"},
	} {
		at, r := f.ask(t, c.header)
		if want := place(c.key, f.addresses); at != want {
			t.Errorf("%q leads to %s, want %s", c.header, at, want)
		}
		if set := r.Header.Values("Set-Cookie"); len(set) > 0 {
			t.Errorf("%q is answered with %q", c.header, set)
		}
	}
	for _, header := range []string{"s", "s=", "s=|", "s=|" + mark("fleet"), "s=;", "S=a|" + mark("fleet"), "xs=a|" + mark("fleet"), "=", "x=s=a"} {
		if _, r := f.ask(t, header); len(r.Header.Values("Set-Cookie")) != 1 {
			t.Errorf("%q is answered with %q, want a new cookie", header, r.Header.Values("Set-Cookie"))
		}
	}
	// As many as fit into a request.
	f.ask(t, strings.Repeat("s=a ", 1900))
	f.ask(t, strings.Repeat("s=a;", 1900))
}

// A session whose endpoint fails stays there by default, and moves with
// session-cookie-change-on-failure. A session that begins goes where it can.
func TestFailures(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "", "proxy-next-upstream: error http_503")
	for i := range 2 {
		f.statuses[i].Store(503)
	}
	for _, mode := range []string{"balanced", "persistent"} {
		at := map[string]string{}
		if f.annotate("affinity-mode: "+mode, "proxy-next-upstream: error http_503"); mode == "persistent" {
			for _, endpoint := range f.addresses {
				at[endpoint] = "INGRESSCOOKIE=" + sum(label("fleet")+endpoint) + "|" + mark("fleet")
			}
		} else {
			for i := 0; len(at) < 3; i++ {
				key := fmt.Sprint(i)
				at[place(key, f.addresses)] = "INGRESSCOOKIE=" + key + "|" + mark("fleet")
			}
		}
		broken, whole := f.addresses[0], f.addresses[2]
		r := f.g.Do(headgatetest.Request{Host: host, Header: cookies(at[broken])}).WantStatus(t, 503)
		if cookie, _ := sent(t, r); r.Header.Get("X-Endpoint") != broken || cookie != "" {
			t.Errorf("%s: endpoint %s answers, with the cookie %q", mode, r.Header.Get("X-Endpoint"), cookie)
		}
		// Each try of a new session asks an endpoint that was not asked.
		for range 10 {
			endpoint, r := f.ask(t, "")
			if cookie, _ := sent(t, r); endpoint != whole || cookie == "" {
				t.Errorf("%s: a new session is at %s with the cookie %q", mode, endpoint, cookie)
			} else if again, _ := f.ask(t, cookie); again != whole {
				t.Errorf("%s: a new session moved to %s", mode, again)
			}
		}
		f.annotate("affinity-mode: "+mode, "proxy-next-upstream: error http_503", "session-cookie-change-on-failure: true")
		endpoint, r := f.ask(t, at[broken])
		cookie, _ := sent(t, r)
		if endpoint != whole || cookie == "" {
			t.Fatalf("%s: endpoint %s answers, with the cookie %q", mode, endpoint, cookie)
		}
		if again, r := f.ask(t, cookie); again != whole || len(r.Header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: the session that moved is at %s", mode, again)
		}
	}
}

const (
	oldChrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/60.0.3112.113 Safari/537.36"
	newChrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_6) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"
	oldUC     = "Mozilla/5.0 (Linux; U; Android 7.0) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/70.0.1.1 UCBrowser/12.13.1.9 Mobile Safari/537.36"
	newUC     = "Mozilla/5.0 (Linux; U; Android 7.0) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/57.0.1.1 UCBrowser/12.13.2.1005 Mobile Safari/537.36"
	iOS12     = "Mozilla/5.0 (iPhone; CPU iPhone OS 12_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1"
	iPadOS13  = "Mozilla/5.0 (iPad; CPU OS 13_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Mobile/15E148 Safari/604.1"
	safari14  = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_6) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Safari/605.1.15"
	safari15  = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_1) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0.3 Safari/605.1.15"
	firefox   = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.14; rv:70.0) Gecko/20100101 Firefox/70.0"
)

// The attributes of the cookie are those of the Ingress whose path is asked for.
func TestAttributes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, "")
	const conditional = "session-cookie-conditional-samesite-none: true"
	for _, c := range []struct {
		path, annotations, agent, http, https string
	}{
		{"/", "", "", "HttpOnly Path=/", "HttpOnly Path=/ Secure"},
		{"/app", "session-cookie-secure: true", "", "HttpOnly Path=/app Secure", "HttpOnly Path=/app Secure"},
		{"/app", "session-cookie-secure: false", "", "HttpOnly Path=/app", "HttpOnly Path=/app Secure"},
		{"/a b;c", "", "", "HttpOnly Path=/a%20b%3Bc", "HttpOnly Path=/a%20b%3Bc Secure"},
		{"/app", "use-regex: true", "", "HttpOnly Path=/app", "HttpOnly Path=/app Secure"},
		{"/app(/|$)(.*)", "use-regex: true", "", "HttpOnly Path=/", "HttpOnly Path=/ Secure"},
		{"/app(/|$)(.*)", "use-regex: true|session-cookie-path: /app", "", "HttpOnly Path=/app", "HttpOnly Path=/app Secure"},
		{"/", "session-cookie-max-age: 60|session-cookie-domain: fleet.test", "", "Domain=fleet.test HttpOnly Max-Age=60 Path=/", "Domain=fleet.test HttpOnly Max-Age=60 Path=/ Secure"},
		{"/", "session-cookie-samesite: None", oldChrome, "HttpOnly Path=/ SameSite=None", "HttpOnly Path=/ SameSite=None Secure"},
		{"/", "session-cookie-samesite: lax|" + conditional, oldChrome, "HttpOnly Path=/ SameSite=Lax", "HttpOnly Path=/ SameSite=Lax Secure"},
	} {
		annotations := []string{"affinity: cookie"}
		if c.annotations != "" {
			annotations = append(annotations, strings.Split(c.annotations, "|")...)
		}
		f.g.Apply(headgatetest.Ingress("web", host, c.path, "fleet", annotations...))
		path := strings.NewReplacer(" ", "%20", "(/|$)(.*)", "/x").Replace(c.path)
		for scheme, want := range map[string]string{"http": c.http, "https": c.https} {
			r := f.g.Do(headgatetest.Request{Host: host, Scheme: scheme, Path: path, Header: http.Header{"User-Agent": {c.agent}}}).WantStatus(t, 200)
			if _, attributes := sent(t, r); strings.Join(attributes, " ") != want {
				t.Errorf("%s with %s: %q, want %q", c.path, c.annotations, attributes, want)
			}
		}
	}

	f.annotate("session-cookie-samesite: None", conditional)
	for agent, want := range map[string]bool{
		"": true, "curl/8.0": true, oldChrome: false, newChrome: true, oldUC: false, newUC: true, iOS12: false, iPadOS13: true, safari14: false, safari15: true, firefox: true,
	} {
		r := f.g.Do(headgatetest.Request{Host: host, Header: http.Header{"User-Agent": {agent}}}).WantStatus(t, 200)
		if _, attributes := sent(t, r); slices.Contains(attributes, "SameSite=None") != want {
			t.Errorf("%s: %q", agent, attributes)
		}
	}

	for seconds, want := range map[int]time.Duration{3600: time.Hour, -1: -time.Second, -1 << 31: -time.Since(time.Unix(0, 0))} {
		f.annotate(fmt.Sprintf("session-cookie-expires: %d", seconds))
		begun := time.Now().Truncate(time.Second)
		_, r := f.ask(t, "")
		line := r.Header.Get("Set-Cookie")
		_, text, _ := strings.Cut(line, "; Expires=")
		at, err := time.Parse("Mon, 02-Jan-06 15:04:05 MST", text)
		if early, late := begun.Add(want).Add(-time.Second), time.Now().Add(want).Add(time.Second); err != nil || at.Before(early) || at.After(late) {
			t.Errorf("session-cookie-expires: %d: the cookie %s, want from %v to %v", seconds, line, early, late)
		}
	}
	if n := f.g.Value(f.g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
}

// The backend's own cookies stay as they are, beside that of the session.
func TestBesideOtherCookies(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, "", "proxy-cookie-path: / /changed")
	for _, own := range [][]string{{"a=1; Path=/"}, {"a=1; Path=/", "b=2"}} {
		r := f.g.Do(headgatetest.Request{Host: host, Header: http.Header{"X-Set": own}}).WantStatus(t, 200)
		lines := r.Header.Values("Set-Cookie")
		if len(lines) != len(own)+1 || !slices.Contains(lines, "a=1; Path=/changed") ||
			!slices.ContainsFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "INGRESSCOOKIE=") && strings.Contains(line, "; Path=/;")
			}) {
			t.Errorf("the cookies are %q", lines)
		}
	}
}

// Of several Ingresses with the same backend, the oldest one with the annotation decides how
// sessions are kept; only paths of Ingresses with the annotation set the cookie, with their own
// attributes.
func TestSharedBackend(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5, "", "session-cookie-name: first", "session-cookie-path: /")
	young := func(name, path string, annotations ...string) string {
		return strings.Replace(headgatetest.Ingress(name, host, path, "fleet", annotations...), "metadata:\n", "metadata:\n  creationTimestamp: 2030-01-01T00:00:00Z\n", 1)
	}
	f.g.Apply(young("plain", "/plain"))
	f.g.Apply(young("second", "/second", "affinity: cookie", "session-cookie-name: second", "session-cookie-max-age: 5", "affinity-mode: persistent"))
	at, r := f.ask(t, "")
	cookie, _ := sent(t, r)
	if !strings.HasPrefix(cookie, "first=") {
		t.Fatalf("the cookie is %q", cookie)
	}
	for _, path := range []string{"/", "/plain", "/second"} {
		for range 3 {
			r := f.g.Do(headgatetest.Request{Host: host, Path: path, Header: cookies(cookie)}).WantStatus(t, 200)
			if to := r.Header.Get("X-Endpoint"); to != at {
				t.Errorf("%s: the session moved from %s to %s", path, at, to)
			}
		}
	}
	if set := f.g.Get(host, "/plain").WantStatus(t, 200).Header.Values("Set-Cookie"); len(set) > 0 {
		t.Errorf("a path without the annotation sets %q", set)
	}
	second, attributes := sent(t, f.g.Get(host, "/second").WantStatus(t, 200))
	if !strings.HasPrefix(second, "first=") || strings.Join(attributes, " ") != "HttpOnly Max-Age=5 Path=/second" {
		t.Errorf("the path of the younger Ingress sets %s with %q", second, attributes)
	}
	_, neighbours := sent(t, f.g.Get("neighbour.test", "/"))
	if neighbours != nil {
		t.Errorf("another host sets a cookie with %q", neighbours)
	}
}
