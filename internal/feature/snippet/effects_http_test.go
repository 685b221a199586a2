package snippet_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

var allowed = headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical")

// users is a Secret with the user a, whose password is b.
const users = "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {a: '$apr1$abcdefgh$k74HMkv1qiXQsM2Wp4E/n1'}\n"

// An effect is what a snippet does to one request.
type effect struct {
	location, server string
	annotations      []string
	// method, path, body and header are those of the request.
	method, path, body string
	header             http.Header
	// want are headers of the response, or with "> " before the name of the request that the
	// backend got, with all values, separated by " | ". The first one may be the status.
	want string
}

// sending answers as the request says, with headers of its own, and what it got.
func sending(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Own", "backend")
	h.Set("X-More", "backend")
	h["X-Two"] = []string{"1", "2"}
	h.Set("Cache-Control", "private")
	h.Set("Last-Modified", "Tue, 24 Nov 2020 13:00:00 GMT")
	h.Set("X-Accel-Expires", "7")
	h.Set("Content-Type", "text/css; charset=utf-8")
	h.Set("Server", "theirs")
	for name, values := range r.Header {
		for _, value := range values {
			h.Add("Got-"+name, value)
		}
	}
	h.Set("Got-Host", r.Host)
	if status, err := strconv.Atoi(strings.Trim(r.URL.Path, "/abcdefghijklmnopqrstuvwxyz")); err == nil {
		w.WriteHeader(status)
	}
}

// showing are the values that an effect wants to see, in the order of its names.
func (e effect) showing(r headgatetest.Response) string {
	var list []string
	for part := range strings.SplitSeq(e.want, "; ") {
		name, _, is := strings.Cut(part, ": ")
		if !is {
			list = append(list, strconv.Itoa(r.Status))
			continue
		}
		values := r.Header.Values(name)
		if got, is := strings.CutPrefix(name, "> "); is {
			values = r.Header.Values("Got-" + got)
		}
		list = append(list, name+": "+strings.Join(values, " | "))
	}
	return strings.Join(list, "; ")
}

// checkEffects asks for each of the effects, each on a host of its own, by HTTP/1.1 and HTTP/2.
func checkEffects(t *testing.T, backend string, effects []effect) {
	t.Helper()
	manifests := allowed + users + headgatetest.Service("web") + headgatetest.Endpoints("web", backend) + headgatetest.Endpoints("none") + headgatetest.Service("dead") + headgatetest.Endpoints("dead")
	for i, e := range effects {
		annotations := slices.Clone(e.annotations)
		if e.location != "" {
			annotations = append(annotations, "configuration-snippet: "+e.location)
		}
		if e.server != "" {
			annotations = append(annotations, "server-snippet: "+e.server)
		}
		manifests += headgatetest.Ingress(fmt.Sprintf("i%d", i), fmt.Sprintf("h%d.test", i), "/", "web", annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for i, e := range effects {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := g.Do(headgatetest.Request{
				Host: fmt.Sprintf("h%d.test", i), Method: e.method, Path: "/" + e.path, Header: e.header, Body: strings.NewReader(e.body), HTTP2: http2, Scheme: scheme,
			})
			if got := e.showing(r); got != e.want {
				t.Errorf("%q, %q (HTTP/2 %v): got\n%s, want\n%s", e.location, e.server, http2, got, e.want)
			}
		})
	}
}

func TestResponseHeaders(t *testing.T) {
	t.Parallel()
	checkEffects(t, headgatetest.StartBackend(t, http.HandlerFunc(sending)), []effect{
		// add_header adds, and only to some statuses without always.
		{location: `add_header X-Own "a $host";`, want: "X-Own: backend | a h0.test"},
		{location: `add_header X-Own a; add_header X-New n always;`, path: "404", want: "404; X-Own: backend; X-New: n"},
		{location: `add_header X-Own a;`, path: "204", want: "204; X-Own: backend | a"},
		{location: `add_header X-New "$http_none"; add_header Cache-Control public;`, want: "X-New: ; Cache-Control: private | public"},
		{location: `add_header X-New $upstream_http_x_own; add_header ETag '"e"';`, want: `X-New: backend; Etag: "e"`},
		// Headers of an inner block replace those of the outer one.
		{location: `add_header X-A a;`, server: `add_header X-B b;`, want: "X-A: a; X-B: "},
		{server: `add_header X-B b; more_set_headers "X-More: s";`, want: "X-B: b; X-More: s"},
		// Those of headers-more are merged, and act before those of add_header.
		{
			location: `more_set_headers "X-More: l"; more_clear_headers X-Two;`, server: `more_set_headers "X-More: s" "X-S: s"; add_header X-More a;`,
			want: "X-More: l | a; X-S: s; X-Two: ",
		},
		{location: `more_clear_headers "X-T*" "C*"; add_header X-Two 3;`, want: "X-Two: 3; Cache-Control: ; X-Own: backend"},
		{location: `more_set_headers -s "404 500" "X-S: s"; more_set_headers -t "text/css text/html" "X-T: t"; more_set_headers -t text/plain "X-P: p";`, want: "X-S: ; X-T: t; X-P: "},
		{location: `more_set_headers -s "404 500" "X-S: s";`, path: "404", want: "404; X-S: s"},
		{location: `more_set_headers "X-More:" "X-Own: ${http_none}" "Server: mine";`, want: "X-More: ; X-Own: ; Server: mine"},
		{location: `more_set_headers -a "X-Two: 3";`, want: "X-Two: 1 | 2 | 3"},
		// Headers that Headgate sets by other annotations stand before a snippet's.
		{
			location: `more_set_headers "Access-Control-Allow-Origin: https://mine";`, annotations: []string{"enable-cors: true"},
			want: "Access-Control-Allow-Origin: https://mine; Access-Control-Allow-Credentials: true",
		},
		// What Headgate answers by itself has them too.
		{location: `add_header X-A a; add_header X-B b always; more_set_headers "X-More: m";`, annotations: []string{"whitelist-source-range: 10.0.0.1"}, want: "403; X-A: ; X-B: b; X-More: m"},
		{location: `add_header X-A a; expires 1h;`, annotations: []string{"permanent-redirect: https://b.test/"}, want: "301; X-A: a; Cache-Control: max-age=3600"},
		// Hidden and passed headers are those of backends.
		{location: `proxy_hide_header x-own; proxy_hide_header Content-Type; add_header X-Own mine;`, want: "X-Own: mine; Content-Type: "},
		{location: `proxy_hide_header X-Two; proxy_pass_header X-Accel-Expires;`, server: `proxy_hide_header X-Own;`, want: "X-Two: ; X-Own: backend; X-Accel-Expires: 7"},
		{server: `proxy_hide_header X-Own; proxy_pass_header Server;`, want: "X-Own: ; X-Accel-Expires: ; Server: "},
	})
}

func TestExpires(t *testing.T) {
	t.Parallel()
	checkEffects(t, headgatetest.StartBackend(t, http.HandlerFunc(sending)), []effect{
		{location: `expires epoch;`, want: "Expires: Thu, 01 Jan 1970 00:00:01 GMT; Cache-Control: no-cache"},
		{location: `expires max;`, server: `expires epoch;`, want: "Expires: Thu, 31 Dec 2037 23:55:55 GMT; Cache-Control: max-age=315360000"},
		{location: `expires 1d; add_header Cache-Control public;`, want: "Cache-Control: max-age=86400 | public"},
		{location: `expires -1;`, want: "Cache-Control: no-cache"},
		{location: `expires 0;`, want: "Cache-Control: max-age=0"},
		{location: `expires modified 1h;`, want: "Expires: Tue, 24 Nov 2020 14:00:00 GMT; Cache-Control: no-cache"},
		{location: `expires off;`, server: `expires max;`, want: "Expires: ; Cache-Control: private"},
		{server: `expires 90m;`, want: "Cache-Control: max-age=5400"},
		{location: `expires 1h;`, path: "403", want: "403; Expires: ; Cache-Control: private"},
		{location: `expires $http_e;`, header: http.Header{"E": {"1w2d"}}, want: "Cache-Control: max-age=777600"},
		{location: `expires $http_e;`, header: http.Header{"E": {"-1h 30m"}}, want: "Cache-Control: no-cache"},
		{location: `expires $http_e;`, header: http.Header{"E": {"2d1w"}}, want: "Cache-Control: private"},
		{location: `expires $http_e;`, header: http.Header{"E": {"@25h"}}, want: "Cache-Control: private"},
		{location: `expires $http_e;`, want: "Cache-Control: private"},
		{location: `expires modified $http_e;`, header: http.Header{"E": {"1h"}}, want: "Expires: Tue, 24 Nov 2020 14:00:00 GMT; Cache-Control: no-cache"},
		{location: `expires modified $http_e;`, header: http.Header{"E": {"max"}}, want: "Cache-Control: private"},
	})
}

// A time of the day is the next one.
func TestExpiresAtATime(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: allowed + headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartBackend(t, http.HandlerFunc(sending))) +
		headgatetest.Ingress("one", "a.test", "/", "web", "configuration-snippet: expires @15h30m;")})
	h := g.Get("a.test", "/").WantStatus(t, 200).Header
	at, err := http.ParseTime(h.Get("Expires"))
	if err != nil || at.Local().Hour() != 15 || at.Local().Minute() != 30 || time.Until(at) > 25*time.Hour || time.Until(at) < -headgatetest.Timeout {
		t.Errorf("Expires %q, %v, %v from now", h.Get("Expires"), err, time.Until(at))
	}
	age, err := strconv.Atoi(strings.TrimPrefix(h.Get("Cache-Control"), "max-age="))
	if left := time.Until(at) - time.Duration(age)*time.Second; err != nil || left > time.Second || left < -headgatetest.Timeout {
		t.Errorf("Cache-Control %q, %v", h.Get("Cache-Control"), err)
	}
}

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	sent := http.Header{"X-A": {"client"}, "X-B": {"b"}, "Origin": {"https://o.test"}, "Accept-Encoding": {"br"}}
	checkEffects(t, headgatetest.StartBackend(t, http.HandlerFunc(sending)), []effect{
		{location: `proxy_set_header X-A mine; proxy_set_header X-B ""; proxy_set_header X-N "$http_x_b $host";`, header: sent, want: "> X-A: mine; > X-B: ; > X-N: b h0.test"},
		{location: `proxy_set_header X-B ""; proxy_set_header X-A $http_x_b;`, header: sent, want: "> X-A: b; > X-B: "},
		{location: `proxy_set_header X-A 1; proxy_set_header X-A 2;`, header: sent, want: "> X-A: 1 | 2"},
		// Those that Headgate sends by itself are sent all the same.
		{location: `proxy_set_header X-Real-IP 192.0.2.1; proxy_set_header X-Scheme ""; proxy_set_header X-Request-ID mine;`, header: http.Header{"X-Request-Id": {"client"}}, want: "> X-Real-IP: 127.0.0.1 | 192.0.2.1; > X-Request-Id: client | mine"},
		{location: `proxy_set_header Upgrade h2c; proxy_set_header Connection close;`, want: "200; > Upgrade: "},
		// A server's headers do not apply: a location of ingress-nginx has some of its own.
		{server: `proxy_set_header X-A mine;`, header: sent, want: "> X-A: client"},
		// What the backend does not get is there for all others.
		{location: `proxy_set_header Origin "";`, annotations: []string{"enable-cors: true", "cors-allow-origin: https://o.test"}, header: sent, want: "> Origin: ; Access-Control-Allow-Origin: https://o.test"},
		{location: `proxy_set_header X-A "";add_header X-Sent $http_x_a;`, header: sent, want: "> X-A: ; X-Sent: client"},
		// What a client sends may be changed for all.
		{location: `more_set_input_headers "X-A: mine" "X-N: n"; more_clear_input_headers X-B; add_header X-Sent $http_x_a;`, header: sent, want: "> X-A: mine; > X-N: n; > X-B: ; X-Sent: mine"},
		{location: `more_set_input_headers -r "X-A: mine" "X-N: n"; more_set_input_headers -t text/plain "X-T: t";`, server: `more_set_input_headers "X-A: s" "X-S: s";`, header: sent, want: "> X-A: mine; > X-N: ; > X-T: ; > X-S: s"},
		{location: `more_clear_input_headers "X-*"; more_set_input_headers "X-Real-IP: 192.0.2.1";`, header: sent, want: "200; > X-A: ; > X-B: ; > X-Real-IP: 127.0.0.1"},
		// The header by which Headgate notices that an auth service calls itself stays.
		{location: `more_clear_input_headers "X-*";`, header: http.Header{"X-Headgate-Checks": {"c"}, "X-A": {"client"}}, want: "> X-Headgate-Checks: c; > X-A: "},
		{location: `more_set_input_headers "X-A:";`, header: sent, want: "> X-A: "},
		// No value ends its line.
		{location: `proxy_set_header X-N "$arg_n"; proxy_set_header X-U $uri;`, path: "a%0d%0aX-Evil:%20e?n=1%0d%0aX-Evil:e", want: "> X-N: 1%0d%0aX-Evil:e; > X-U: /aX-Evil: e; > X-Evil: "},
	})
}

func TestAddressesAndMethods(t *testing.T) {
	t.Parallel()
	const list, none = "whitelist-source-range: 127.0.0.1", "whitelist-source-range: 10.0.0.1"
	password := []string{"auth-type: basic", "auth-secret: users", "auth-secret-type: auth-map"}
	any := append([]string{"satisfy: any"}, password...)
	known := http.Header{"Authorization": {"Basic YTpi"}}
	checkEffects(t, headgatetest.StartBackend(t, http.HandlerFunc(sending)), []effect{
		{location: `deny 127.0.0.1;`, want: "403"},
		{location: `deny 10.0.0.0/8; deny fd00::/8;`, want: "200"},
		{location: `allow 127.0.0.0/9; deny all;`, want: "200"},
		{location: `deny 127.0.0.2; allow 127.0.0.1/32; deny all;`, want: "200"},
		{location: `deny 126.0.0.0/7; allow all;`, want: "403"},
		{location: `allow unix:; deny all; add_header X-A a always;`, want: "403; X-A: a"},
		// The rules of a server count where the location has none.
		{server: `deny all;`, want: "403"},
		{server: `deny all;`, location: `allow 127.0.0.1;`, want: "200"},
		{server: `deny all;`, annotations: []string{list}, want: "200"},
		{server: `deny all;`, annotations: []string{"denylist-source-range: 10.0.0.1"}, want: "200"},
		// Those of a snippet stand behind the lists of annotations.
		{location: `deny all;`, annotations: []string{list}, want: "200"},
		{location: `allow all;`, annotations: []string{none}, want: "403"},
		{location: `allow all;`, annotations: []string{"denylist-source-range: 127.0.0.1"}, want: "403"},
		{location: `deny all;`, annotations: []string{"denylist-source-range: 10.0.0.1"}, want: "403"},
		// With other checks.
		{location: `deny all;`, annotations: any, want: "401"},
		{location: `deny all;`, annotations: any, header: known, want: "200"},
		{location: `allow 127.0.0.1; deny all;`, annotations: any, want: "200"},
		{location: `deny 10.0.0.1;`, annotations: any, want: "401"},
		{location: `allow all;`, annotations: append([]string{"denylist-source-range: 127.0.0.1"}, any...), want: "401"},
		{location: `allow all;`, annotations: password, want: "401"},
		{location: `deny all;`, annotations: password, header: known, want: "403"},
		{location: `allow all;`, annotations: password, header: known, want: "200"},
		// Methods.
		{location: `limit_except GET { deny all; }`, want: "200"},
		{location: `limit_except GET { deny all; }`, method: "HEAD", want: "200"},
		{location: `limit_except GET { deny all; }`, method: "POST", want: "403"},
		{location: `limit_except POST PUT { allow 127.0.0.1; deny all; } deny all;`, want: "200"},
		{location: `limit_except POST PUT { allow 127.0.0.1; deny all; } deny all;`, method: "PUT", want: "403"},
		// The steps of the block are for the other methods.
		{location: `limit_except GET { allow all; } if ($arg_a) { return 410; }`, path: "?a=1", want: "410"},
		{location: `limit_except GET { allow all; } if ($arg_a) { return 410; }`, path: "?a=1", method: "POST", want: "200"},
		{location: `error_page 403 = @page; deny all;`, server: `location @page { limit_except GET { deny all; } return 218 page; }`, want: "218"},
		{location: `error_page 403 = @page; deny all;`, server: `location @page { limit_except GET { deny all; } return 218 page; }`, method: "POST", want: "404"},
		// What a condition says replaces nothing but its own.
		{location: `deny 127.0.0.1; if ($arg_a) { add_header X-A a always; }`, path: "?a=1", want: "403; X-A: a"},
	})
}
