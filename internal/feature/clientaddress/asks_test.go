package clientaddress_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// believed and other are values of proxy-real-ip-cidr, with and without the address from which
// the tests ask.
const (
	believed = "proxy-real-ip-cidr: 127.0.0.1,10.0.0.0/8,2001:db8:1::/48"
	other    = "proxy-real-ip-cidr: 127.0.0.2,10.0.0.0/8"
	headers  = "use-forwarded-headers: true"
	address  = "enable-real-ip: true"
	custom   = "forwarded-for-header: cf-connecting-ip"
	all      = "compute-full-forwarded-for: true"
)

// peer is the address from which the tests ask, and PORT and SCHEME are those of the request.
const (
	peer       = "127.0.0.1"
	connection = " SCHEME PORT a.test"
)

// line is a header.
func line(name string, values ...string) http.Header { return http.Header{name: values} }

// outer is what a load balancer says of the client's request.
func outer(more ...string) http.Header {
	h := http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"outer.test:8443, inner.test"}, "X-Forwarded-Port": {"8443"}}
	if more != nil {
		h["X-Forwarded-For"] = more
	}
	return h
}

// An asked is a request, and what counts in it: the address, the scheme, the port and the host. It is
// for instances with some keys.
type asked struct {
	name   string
	header http.Header
	proxy  string
	want   string
	// chain is X-Forwarded-For at the backend, the address if it is empty.
	chain string
}

// forged are headers that no key has anyone believe, or not with these keys.
func forged(want string) []asked {
	return []asked{
		{name: "nothing", want: want},
		{name: "X-Real-IP", header: line("X-Real-Ip", "203.0.113.7"), want: want},
		{name: "Forwarded", header: line("Forwarded", "for=203.0.113.7;proto=https;host=outer.test"), want: want},
		{name: "True-Client-IP", header: line("True-Client-Ip", "203.0.113.7"), want: want},
		{name: "the own header", header: line("X-Headgate-Chain", "203.0.113.7"), want: want},
		{name: "X-Forwarded-For-Proxy-Protocol", header: line("X-Forwarded-For-Proxy-Protocol", "203.0.113.7"), want: want},
		{name: "with an underscore", header: line("X_Forwarded_For", "203.0.113.7"), want: want},
		{name: "X-Forwarded-Scheme and -Ssl", header: http.Header{"X-Forwarded-Scheme": {"https"}, "X-Scheme": {"https"}, "X-Forwarded-Ssl": {"on"}}, want: want},
	}
}

// ignored are the headers of a load balancer, from a client that is not one.
func ignored(want string) []asked {
	return append(forged(want), []asked{
		{name: "all", header: outer("203.0.113.7"), want: want},
		{name: "a chain", header: line("X-Forwarded-For", "203.0.113.7, 10.0.0.1"), want: want},
		{name: "another header", header: line("Cf-Connecting-Ip", "203.0.113.7"), want: want},
	}...)
}

// addresses are headers with addresses from a load balancer.
func addresses(rest string) []asked {
	list := []asked{
		{name: "no address", header: line("X-Forwarded-For", "unknown"), want: peer + rest},
		{name: "an empty one", header: line("X-Forwarded-For", ""), want: peer + rest},
		{name: "one", header: line("X-Forwarded-For", "203.0.113.7"), want: "203.0.113.7" + rest},
		{name: "with a port", header: line("X-Forwarded-For", "203.0.113.7:4711"), want: "203.0.113.7" + rest},
		{name: "IPv6", header: line("X-Forwarded-For", "2001:db8::7"), want: "2001:db8::7" + rest},
		{name: "IPv6 with a port", header: line("X-Forwarded-For", "[2001:db8::7]:4711"), want: "2001:db8::7" + rest},
		{name: "IPv4 as IPv6", header: line("X-Forwarded-For", "::ffff:203.0.113.7"), want: "::ffff:203.0.113.7" + rest},
		{name: "forged before it", header: line("X-Forwarded-For", "198.51.100.1, 203.0.113.7"), want: "203.0.113.7" + rest},
		{name: "forged in a line before it", header: line("X-Forwarded-For", "198.51.100.1", "203.0.113.7"), want: "203.0.113.7" + rest},
		{name: "load balancers behind it", header: line("X-Forwarded-For", "198.51.100.1, 203.0.113.7,10.0.0.1 , 10.0.0.2"), want: "203.0.113.7" + rest},
		{name: "load balancers by IPv6", header: line("X-Forwarded-For", "203.0.113.7, 2001:db8::7, 2001:db8:1::1"), want: "2001:db8::7" + rest},
		{name: "load balancers as IPv6", header: line("X-Forwarded-For", "203.0.113.7, ::ffff:10.0.0.1"), want: "203.0.113.7" + rest},
		{name: "text before load balancers", header: line("X-Forwarded-For", "203.0.113.7, unknown, 10.0.0.1"), want: "10.0.0.1" + rest},
		{name: "the own address", header: line("X-Forwarded-For", "127.0.0.1"), want: peer + rest},
	}
	for i, c := range [][2]string{
		{"203.0.113.7:0", peer}, {"203.0.113.7:65536", peer}, {"203.0.113.7:00080", "203.0.113.7"}, {"[203.0.113.7]:80", "203.0.113.7"},
		{"[2001:db8::7]", peer}, {"[2001:db8::7]:0", peer}, {"fe80::1%lo", peer}, {",203.0.113.7", peer}, {",,203.0.113.7,", "203.0.113.7"},
		{"203.0.113.7, 010.0.0.1", "203.0.113.7"}, {"203.0.113.007", "203.0.113.7"}, {"203..113.", "203.0.113.0"}, {"203.0.113", peer},
		{"255.255.255.255", peer}, {"203.0.113.256", peer}, {",", peer},
	} {
		list = append(list, asked{name: fmt.Sprint("form ", i), header: line("X-Forwarded-For", c[0]), want: c[1] + rest})
	}
	return list
}

// askedOf are headers about what the client asked for, from a load balancer.
func askedOf() []asked {
	return []asked{
		{name: "all", header: outer("203.0.113.7"), want: "203.0.113.7 https 8443 outer.test:8443"},
		{name: "no address", header: outer(), want: peer + " https 8443 outer.test:8443"},
		{name: "proto", header: line("X-Forwarded-Proto", "HTTPS"), want: peer + " https PORT a.test"},
		{name: "http", header: line("X-Forwarded-Proto", "http"), want: peer + " http PORT a.test"},
		{name: "wss", header: line("X-Forwarded-Proto", "wss"), want: peer + " wss PORT a.test"},
		{name: "protos", header: line("X-Forwarded-Proto", "https, http"), want: peer + " https PORT a.test"},
		{name: "bad values", header: http.Header{"X-Forwarded-Proto": {"ht tp"}, "X-Forwarded-Host": {"a/b"}, "X-Forwarded-Port": {"0"}}, want: peer + connection},
		{name: "empty values", header: http.Header{"X-Forwarded-Proto": {""}, "X-Forwarded-Host": {""}, "X-Forwarded-Port": {""}}, want: peer + connection},
		{name: "IPv6", header: line("X-Forwarded-Host", "[2001:db8::1]:80"), want: peer + " SCHEME PORT [2001:db8::1]:80"},
	}
}

// proxied are headers of the PROXY protocol, and of requests beside them.
func proxied(both bool) []asked {
	client, balancer, text := "PROXY TCP4 203.0.113.7 192.0.2.1 40000 8080\r\n", "PROXY TCP4 10.0.0.1 192.0.2.1 40000 8080\r\n", "PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n"
	mapped, unknown := "PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 40000 8080\r\n", "PROXY UNKNOWN\r\n"
	six, sixFour := "PROXY TCP6 2001:db8:1::1 2001:db8::1 40000 8080\r\n", "PROXY TCP6 ::ffff:10.0.0.1 ::ffff:192.0.2.1 40000 8080\r\n"
	client6 := "PROXY TCP6 2001:db8::7 2001:db8::1 40000 8080\r\n"
	list := []asked{
		{name: "PROXY", proxy: client, want: "203.0.113.7 SCHEME 8080 a.test"},
		{name: "PROXY, 443", proxy: text, want: "203.0.113.7 https 443 a.test"},
		{name: "PROXY, IPv4 as IPv6", proxy: mapped, want: "::ffff:203.0.113.7 SCHEME 8080 a.test"},
		{name: "PROXY, unknown", proxy: unknown, want: peer + connection},
		{name: "PROXY, a client with headers", proxy: client, header: outer("198.51.100.1"), want: "203.0.113.7 SCHEME 8080 a.test"},
	}
	if !both {
		return append(list, []asked{
			{name: "PROXY, a load balancer with headers", proxy: balancer, header: outer("203.0.113.7"), want: "10.0.0.1 SCHEME 8080 a.test"},
			{name: "PROXY, unknown with headers", proxy: unknown, header: outer("203.0.113.7"), want: peer + connection},
		}...)
	}
	return append(list, []asked{
		{name: "PROXY, a load balancer with headers", proxy: balancer, header: outer("203.0.113.7"), want: "203.0.113.7 https 8443 outer.test:8443"},
		{name: "PROXY, a load balancer with http", proxy: balancer, header: line("X-Forwarded-Proto", "http"), want: "10.0.0.1 http 8080 a.test"},
		{name: "PROXY, a load balancer with a chain", proxy: balancer, header: line("X-Forwarded-For", "198.51.100.1", "203.0.113.7, 10.0.0.2"), want: "203.0.113.7 SCHEME 8080 a.test"},
		{name: "PROXY, unknown with headers", proxy: unknown, header: outer("203.0.113.7"), want: "203.0.113.7 https 8443 outer.test:8443"},
		{name: "PROXY, a load balancer by IPv6", proxy: six, header: outer("2001:db8::7, 2001:db8:1::2"), want: "2001:db8::7 https 8443 outer.test:8443"},
		{name: "PROXY, a load balancer as IPv6", proxy: sixFour, header: outer("203.0.113.7"), want: "203.0.113.7 https 8443 outer.test:8443"},
		{name: "PROXY, a client by IPv6", proxy: client6, header: outer("203.0.113.7"), want: "2001:db8::7 SCHEME 8080 a.test"},
	}...)
}

// allProxied are requests with a header of the PROXY protocol before each.
func allProxied(list []asked) []asked {
	for i := range list {
		list[i].proxy = "PROXY TCP4 203.0.113.9 192.0.2.1 40000 8080\r\n"
	}
	return list
}

// chains are what backends get with compute-full-forwarded-for.
func chains() []asked {
	return []asked{
		{name: "nothing", want: peer + connection},
		{name: "one", header: line("X-Forwarded-For", "203.0.113.7"), want: "203.0.113.7" + connection, chain: "203.0.113.7, 127.0.0.1"},
		{name: "a chain", header: line("X-Forwarded-For", "198.51.100.1, 203.0.113.7"), want: "203.0.113.7" + connection, chain: "198.51.100.1, 203.0.113.7, 127.0.0.1"},
	}
}

// ofAnother is the header that forwarded-for-header names.
func ofAnother() []asked {
	return append(forged(peer+connection), []asked{
		{name: "X-Forwarded-For", header: line("X-Forwarded-For", "203.0.113.7"), want: peer + connection},
		{name: "it", header: line("Cf-Connecting-Ip", "203.0.113.7"), want: "203.0.113.7" + connection},
		{name: "forged in a line before it", header: line("Cf-Connecting-Ip", "198.51.100.1", "203.0.113.7"), want: "203.0.113.7" + connection},
		{name: "both", header: http.Header{"Cf-Connecting-Ip": {"203.0.113.7"}, "X-Forwarded-For": {"198.51.100.1"}}, want: "203.0.113.7" + connection},
	}...)
}

// TestWhoAsks compares what counts in requests, by each key and each version of HTTP: for NGINX's
// log, for the backend, and for a list of addresses.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	const lied = "203.0.113.9 SCHEME 8080 a.test"
	for _, c := range []struct {
		name     string
		keys     []string
		requests []asked
	}{
		{"no keys", nil, ignored(peer + connection)},
		{"others are believed", []string{headers, other}, ignored(peer + connection)},
		{"nobody is believed", []string{headers, all, "proxy-real-ip-cidr: "}, ignored(peer + connection)},
		{"believed for nothing", []string{believed, all, custom}, ignored(peer + connection)},
		{"an invalid header", []string{headers, believed, "forwarded-for-header: X_Forwarded_For"}, append(forged(peer+connection),
			asked{name: "all", header: outer("203.0.113.7"), want: peer + " https 8443 outer.test:8443"})},
		{"forwarded headers", []string{headers, believed}, append(append(forged(peer+connection), addresses(connection)...), askedOf()...)},
		{"the address alone", []string{address, believed}, append(append(forged(peer+connection), addresses(connection)...),
			asked{name: "all", header: outer("203.0.113.7"), want: "203.0.113.7" + connection})},
		{"the whole chain", []string{headers, all, believed}, chains()},
		{"another header", []string{headers, custom, believed}, ofAnother()},
		{"another header alone", []string{address, custom, believed}, ofAnother()},
		{"the PROXY protocol", []string{on, believed}, append(proxied(false), allProxied(ignored(lied))...)},
		{"the PROXY protocol and the address", []string{on, address, believed}, append(proxied(false), allProxied(ignored(lied))...)},
		{"the PROXY protocol of others", []string{on, headers, other}, allProxied(ignored(peer + connection))},
		{"the PROXY protocol and headers", []string{on, headers, believed}, append(proxied(true), allProxied(ignored(lied))...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newWitness(t, c.keys).ask(c.requests)
		})
	}
}

// A witness says who asks, by an access log and a backend.
type witness struct {
	*headgatetest.Instance
	t       *testing.T
	log     string
	proxied bool
	want    map[string]string // addresses by path
}

// logLine is the beginning of a line of the access log.
var logLine = regexp.MustCompile(`(?m)^(\S+) - - \[[^]]*\] "GET (\S+) `)

func newWitness(t *testing.T, keys []string) *witness {
	t.Helper()
	w := &witness{t: t, want: map[string]string{}, log: filepath.Join(t.TempDir(), "access.log")}
	for _, key := range keys {
		w.proxied = w.proxied || key == on
	}
	if !w.proxied {
		keys = append([]string{"use-http3: true"}, keys...)
	}
	w.Instance = headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), AccessLog: w.log, Manifests: headgatetest.Config(keys...) +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Ingress("listed", "a.test", "/listed", "a", "allowlist-source-range: 203.0.113.7") +
		headgatetest.Ingress("profile", "a.test", "/profile", "a", "proxy-body-size: 3m")})
	return w
}

// ask asks each request by each version of HTTP, on each path, and compares the log in the end.
func (w *witness) ask(requests []asked) {
	w.t.Helper()
	for i, a := range requests {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			w.one(a, headgatetest.Request{Scheme: scheme, HTTP2: http2, Path: fmt.Sprintf("/%d", i)})
		})
		if w.HTTP3() && !w.proxied {
			w.one(a, headgatetest.Request{Scheme: "https", HTTP3: true, Path: fmt.Sprintf("/%d", i)})
		}
	}
	var seen map[string]string
	headgatetest.Eventually(w.t, "the access log has all requests", func() bool {
		seen = w.read()
		return len(seen) >= len(w.want)
	})
	if diff := cmp.Diff(w.want, seen); diff != "" {
		w.t.Errorf("the addresses in the access log (-want +got):\n%s", diff)
	}
}

// read reads the addresses in the access log, by path.
func (w *witness) read() map[string]string {
	w.t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	seen := map[string]string{}
	for _, found := range logLine.FindAllStringSubmatch(string(text), -1) {
		seen[found[2]] = found[1]
	}
	return seen
}

func (w *witness) one(a asked, r headgatetest.Request) {
	w.t.Helper()
	port := fmt.Sprint(w.HTTP)
	if r.Scheme == "https" {
		port = "443"
	}
	want := strings.NewReplacer("SCHEME", r.Scheme, "PORT", port).Replace(a.want)
	address, _, _ := strings.Cut(want, " ")
	name := fmt.Sprintf("%s by %s, HTTP/2 %v, HTTP/3 %v", a.name, r.Scheme, r.HTTP2, r.HTTP3)
	r.Host, r.Header, r.Proxy = "a.test", a.header, a.proxy
	path := fmt.Sprintf("%s-%s-%v-%v", r.Path, r.Scheme, r.HTTP2, r.HTTP3)
	// With a shortcut, with one into a profile, and without one.
	for _, r.Path = range []string{path, path + "-again", "/profile" + path, "/profile" + path + "-again", "/listed" + path} {
		w.want[r.Path] = address
		got := w.Do(r)
		if strings.HasPrefix(r.Path, "/listed") && strings.TrimPrefix(address, "::ffff:") != "203.0.113.7" {
			if got.Status != 403 {
				w.t.Errorf("%s: %d behind the list, want 403", name, got.Status)
			}
			continue
		}
		if got.Echo == nil {
			w.t.Errorf("%s: %s is answered %d", name, r.Path, got.Status)
			continue
		}
		w.compare(name, got.Echo, a, want)
	}
}

// compare looks at what the backend saw.
func (w *witness) compare(name string, seen *headgatetest.Echo, a asked, want string) {
	w.t.Helper()
	h := seen.Header
	address, _, _ := strings.Cut(want, " ")
	chain := a.chain
	if chain == "" {
		chain = address
	}
	got := strings.Join([]string{h.Get("X-Real-Ip"), h.Get("X-Forwarded-Proto"), h.Get("X-Forwarded-Port"), h.Get("X-Forwarded-Host")}, " ")
	if got != want || h.Get("X-Forwarded-For") != chain || h.Get("X-Headgate-Chain") != a.header.Get("X-Headgate-Chain") && h.Get("X-Headgate-Chain") != "" {
		w.t.Errorf("%s: the backend saw %s and X-Forwarded-For %q, want %s and %q", name, got, h.Get("X-Forwarded-For"), want, chain)
	}
	if scheme := h.Get("X-Forwarded-Proto"); h.Get("X-Scheme") != scheme || h.Get("X-Forwarded-Scheme") != scheme {
		w.t.Errorf("%s: contradictions: %v", name, h)
	}
	if seen.Host != h.Get("X-Forwarded-Host") {
		w.t.Errorf("%s: the backend saw the host %q and %q", name, seen.Host, h.Get("X-Forwarded-Host"))
	}
}
