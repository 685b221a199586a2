package addresslist_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// from sends requests of a client with an address, as a load balancer does.
func from(g *headgatetest.Instance, host, address string) headgatetest.Response {
	family := "TCP4"
	to := "192.0.2.1"
	if strings.Contains(address, ":") {
		family, to = "TCP6", "2001:db8::1"
	}
	return g.Do(headgatetest.Request{Host: host, Proxy: fmt.Sprintf("PROXY %s %s %s 40000 80\r\n", family, address, to)})
}

const users = "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n"

func start(t *testing.T, manifests string, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: manifests +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Config(append(keys, "use-proxy-protocol: true")...)})
}

func TestLists(t *testing.T) {
	t.Parallel()
	var manifests string
	host := func(name string, annotations ...string) {
		manifests += headgatetest.Ingress(name, name+".test", "/", "a", annotations...)
	}
	host("allow", "allowlist-source-range: 192.0.2.0/24,2001:db8::/32,198.51.100.7")
	host("deny", "denylist-source-range: 192.0.2.0/24,2001:db8::/32,198.51.100.7")
	host("both", "allowlist-source-range: 192.0.2.0/24", "denylist-source-range: 192.0.2.128/25")
	host("every", "allowlist-source-range: 0.0.0.0/0,::/0")
	host("four", "allowlist-source-range: 0.0.0.0/0")
	host("ends", "allowlist-source-range: 0.0.0.0/8,255.255.255.0/24,::/64,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	host("open")
	g := start(t, manifests)
	for _, c := range []struct{ host, in, out string }{
		{"allow.test", "192.0.2.0 192.0.2.255 198.51.100.7 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff ::ffff:192.0.2.9",
			"192.0.1.255 192.0.3.0 198.51.100.6 198.51.100.8 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: ::192.0.2.9 ::ffff:192.0.3.9"},
		{"deny.test", "192.0.1.255 198.51.100.8 2001:db9::", "192.0.2.1 198.51.100.7 2001:db8::1 ::ffff:192.0.2.9"},
		{"both.test", "192.0.2.1 192.0.2.127", "192.0.2.128 192.0.3.1 2001:db8::1"},
		{"every.test", "0.0.0.0 255.255.255.254 192.0.2.1 :: ffff::", ""},
		{"four.test", "192.0.2.1 255.255.255.254 ::ffff:192.0.2.1", "2001:db8::1"},
		{"ends.test", "0.0.0.0 0.255.255.255 255.255.255.254 ::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1.0.0.0 255.255.254.255 0:0:0:1:: ffff::"},
		{"open.test", "192.0.2.1 2001:db8::1", ""},
	} {
		for _, address := range strings.Fields(c.in) {
			if got := from(g, c.host, address).Status; got != 200 {
				t.Errorf("%s from %s: status %d, want 200", c.host, address, got)
			}
		}
		for _, address := range strings.Fields(c.out) {
			if got := from(g, c.host, address).Status; got != 403 {
				t.Errorf("%s from %s: status %d, want 403", c.host, address, got)
			}
		}
	}
	// A change takes no reload.
	before := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Ingress("open", "open.test", "/", "a", "denylist-source-range: 192.0.2.1"))
	from(g, "open.test", "192.0.2.1").WantStatus(t, 403)
	g.Apply(headgatetest.Config("use-proxy-protocol: true", "whitelist-source-range: 198.51.100.0/24", "denylist-source-range: 198.51.100.7"))
	from(g, "open.test", "192.0.2.1").WantStatus(t, 403)
	from(g, "open.test", "192.0.2.2").WantStatus(t, 403)
	from(g, "open.test", "198.51.100.7").WantStatus(t, 200)
	from(g, "every.test", "198.51.100.7").WantStatus(t, 403)
	from(g, "every.test", "192.0.2.2").WantStatus(t, 200)
	if got := g.Value(g.Metrics.Reloads); got != before {
		t.Errorf("%v reloads, before %v", got, before)
	}
}

// The list counts as one of the auth checks, and comes before the others.
func TestSatisfy(t *testing.T) {
	t.Parallel()
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	manifests := users
	basic, url := []string{"auth-type: basic", "auth-secret: users"}, []string{"auth-url: http://" + service + "/"}
	host := func(name, list string, auth []string, more ...string) {
		manifests += headgatetest.Ingress(name, name+".test", "/", "a", append(append([]string{list}, auth...), more...)...)
	}
	const allow, deny = "allowlist-source-range: 192.0.2.0/24", "denylist-source-range: 192.0.2.0/24"
	host("allow-all", allow, basic)
	host("allow-any", allow, basic, "satisfy: any")
	host("deny-all", deny, basic)
	host("deny-any", deny, basic, "satisfy: any")
	host("url-allow-all", allow, url)
	host("url-allow-any", allow, url, "satisfy: any")
	host("url-deny-all", deny, url)
	host("url-deny-any", deny, url, "satisfy: any")
	host("alone-allow", allow, nil, "satisfy: any")
	host("alone-deny", deny, nil, "satisfy: any")
	g := start(t, manifests)
	login := http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}, "X-Token": {"ok"}}
	// The statuses of a listed client without and with a password, and of another one.
	for host, want := range map[string][4]int{
		"allow-all": {401, 200, 403, 403}, "allow-any": {200, 200, 401, 200},
		"deny-all": {403, 403, 401, 200}, "deny-any": {401, 200, 401, 200},
		"url-allow-all": {401, 200, 403, 403}, "url-allow-any": {200, 200, 401, 200},
		"url-deny-all": {403, 403, 401, 200}, "url-deny-any": {401, 200, 401, 200},
		"alone-allow": {200, 200, 403, 403}, "alone-deny": {403, 403, 200, 200},
	} {
		for i, header := range []http.Header{nil, login, nil, login} {
			address := "192.0.2.7"
			if i >= 2 {
				address = "198.51.100.7"
			}
			headgatetest.EveryProtocol(func(http2 bool, scheme string) {
				r := g.Do(headgatetest.Request{Host: host + ".test", Scheme: scheme, HTTP2: http2, Header: header, Proxy: "PROXY TCP4 " + address + " 192.0.2.1 40000 80\r\n"})
				if r.Status != want[i] {
					t.Errorf("%s from %s with %v over %s, HTTP/2 %v: status %d, want %d", host, address, header, scheme, http2, r.Status, want[i])
				}
			})
		}
	}
}

// What comes before the list, and what comes behind.
func TestOrder(t *testing.T) {
	t.Parallel()
	const other = "allowlist-source-range: 192.0.2.1"
	g := start(t, headgatetest.Service("silent")+headgatetest.Endpoints("silent")+
		headgatetest.Ingress("redirect", "redirect.test", "/", "a", other, "permanent-redirect: https://new.test/")+
		headgatetest.Ingress("silent", "silent.test", "/", "silent", other)+
		headgatetest.Ingress("cors", "cors.test", "/", "a", other, "enable-cors: true")+
		headgatetest.Ingress("part", "part.test", "/one", "a", other)+headgatetest.Ingress("rest", "part.test", "/", "a"))
	ask := func(method, host, path string, header http.Header, want int) headgatetest.Response {
		t.Helper()
		return g.Do(headgatetest.Request{Method: method, Host: host, Path: path, Header: header, Proxy: "PROXY TCP4 198.51.100.7 192.0.2.1 40000 80\r\n"}).WantStatus(t, want)
	}
	ask("GET", "redirect.test", "/", nil, 301)
	ask("GET", "silent.test", "/", nil, 503)
	origin := http.Header{"Origin": {"https://o.test"}, "Access-Control-Request-Method": {"PUT"}}
	ask("OPTIONS", "cors.test", "/", origin, 204)
	if r := ask("GET", "cors.test", "/", origin, 403); r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a refusal has the headers %v", r.Header)
	}
	for path, want := range map[string]int{"/one": 403, "/two": 200, "/one/../two": 200, "//one": 403, "/two/../one": 403, "/%6fne": 403, "/one;/x": 400} {
		ask("GET", "part.test", path, nil, want)
	}
}

// A long list counts to its last entry, and a list that is shared is pushed once.
func TestLongList(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&list, "10.%d.%d.%d/32,", i/250, i%250, 1)
	}
	list.WriteString("192.0.2.7")
	g := start(t, headgatetest.Ingress("one", "one.test", "/", "a", "allowlist-source-range: "+list.String())+headgatetest.Ingress("two", "two.test", "/", "a", "denylist-source-range: "+list.String()))
	for i := 0; i < 10000; i += 997 {
		address := fmt.Sprintf("10.%d.%d.1", i/250, i%250)
		from(g, "one.test", address).WantStatus(t, 200)
		from(g, "two.test", address).WantStatus(t, 403)
		from(g, "one.test", address[:len(address)-1]+"2").WantStatus(t, 403)
		from(g, "two.test", address[:len(address)-1]+"2").WantStatus(t, 200)
	}
	from(g, "one.test", "192.0.2.7").WantStatus(t, 200)
	from(g, "one.test", "192.0.2.8").WantStatus(t, 403)
}
