package basicauth_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// secret is a manifest of a Secret with a file of users.
func secret(name string, users ...string) string {
	return fmt.Sprintf("---\nkind: Secret\napiVersion: v1\nmetadata: {name: %s}\nstringData: {auth: %q}\n", name, strings.Join(users, "\n"))
}

// guarded is an Ingress for all of a host, with users of a Secret.
func guarded(name, host, secret string, annotations ...string) string {
	return headgatetest.Ingress(name, host, "/", "one", append([]string{"auth-type: basic", "auth-secret: " + secret}, annotations...)...)
}

func one(t *testing.T) string {
	t.Helper()
	return headgatetest.Service("one") + headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one"))
}

func basicHeader(text string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(text))}}
}

// get asks a host with credentials "NAME:PASSWORD".
func get(g *headgatetest.Instance, host, credentials string) headgatetest.Response {
	return g.Do(headgatetest.Request{Host: host, Header: basicHeader(credentials)})
}

// wantRefused fails the test unless the answer asks for a password and no
// backend saw the request.
func wantRefused(t *testing.T, r headgatetest.Response, realm string) {
	t.Helper()
	r.WantStatus(t, 401)
	if got, want := r.Header.Get("WWW-Authenticate"), fmt.Sprintf("Basic realm=%q", realm); got != want {
		t.Errorf("WWW-Authenticate: %s, want %s", got, want)
	}
	if r.Echo != nil {
		t.Errorf("a backend answered")
	}
}

// The hashes are those of other programs.
func TestHashes(t *testing.T) {
	t.Parallel()
	const password = "pass word:ü"
	file, err := os.ReadFile("testdata/htpasswd")
	if err != nil {
		t.Fatal(err)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + secret("users", string(file)) + guarded("web", "web.test", "users")})
	tried := 0
	for line := range strings.Lines(string(file)) {
		user, _, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		tried++
		right, wrong := password, []string{"pass word", "", password + "x", "Pass word:ü", password + "\x00", password + "\x00x"}
		if user == "plain" {
			right, wrong[0] = "pass word", password
		}
		if strings.HasSuffix(user, "des") {
			// It compares eight bytes.
			wrong = []string{"", "pass", "Pass word:ü", password + "\x00"}
		}
		// Twice: the second time it is remembered.
		for range 2 {
			if r := get(g, "web.test", user+":"+right); r.Status != 200 {
				t.Errorf("%s: status %d with the right password", user, r.Status)
			}
			for _, w := range wrong {
				if r := get(g, "web.test", user+":"+w); r.Status != 401 {
					t.Errorf("%s: status %d with the password %q", user, r.Status, w)
				}
			}
		}
		wantRefused(t, get(g, "web.test", user+"x:"+right), "")
	}
	if tried < 19 {
		t.Errorf("%d users were tried", tried)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) +
		secret("users", "user:{PLAIN}secret", "empty:{PLAIN}", "a b:{PLAIN}space", "ü:{PLAIN}é", "\xff:{PLAIN}\xfe") +
		guarded("web", "web.test", "users", "auth-realm: Authentication Required - foo")})
	encode := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		header string
		want   int
	}{
		{"Basic " + encode([]byte("user:secret")), 200},
		{"bAsIc   " + encode([]byte("user:secret")), 200},
		{"Basic " + encode([]byte("empty:")), 200},
		{"Basic " + encode([]byte("a b:space")), 200},
		{"Basic " + encode([]byte("ü:é")), 200},
		{"Basic " + encode([]byte("empty:x")), 401},
		{"Basic " + encode([]byte("user")), 401},
		{"Basic " + encode([]byte("user:")), 401},
		{"Basic " + encode([]byte(":secret")), 401},
		{"Basic " + encode([]byte(":")), 401},
		{"Basic " + encode([]byte("\nuser:secret")), 401},
		{"Basic " + encode([]byte("user:{PLAIN}secret")), 401},
		{"Basic " + encode([]byte("user:secret\n")), 401},
		{"Basic " + encode([]byte("secret\nempty:")), 401},
		{"Basic", 401},
		{"Basic ", 401},
		{"Basic !!!!", 401},
		{"Basic " + encode([]byte("user:secret")) + " x", 401},
		{"Basic" + encode([]byte("user:secret")), 401},
		{"Bearer " + encode([]byte("user:secret")), 401},
		{encode([]byte("user:secret")), 401},
		{"Digest username=\"user\"", 401},
		{"", 401},
	} {
		r := g.Do(headgatetest.Request{Host: "web.test", Header: http.Header{"Authorization": {c.header}}})
		if r.Status != c.want {
			t.Errorf("%q: status %d, want %d", c.header, r.Status, c.want)
		}
		if c.want == 401 {
			wantRefused(t, r, "Authentication Required - foo")
		} else if got := r.Echo.Header.Get("Authorization"); got != "" {
			t.Errorf("%q: the backend got %q", c.header, got)
		}
	}
	r := g.Get("web.test", "/")
	wantRefused(t, r, "Authentication Required - foo")
	if !strings.Contains(r.Body, "401 Authorization Required") {
		t.Errorf("the page is %q", r.Body)
	}
}

func TestOverHTTP2WithBodies(t *testing.T) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "web.test", "web.test")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + secret("users", "user:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/") +
		headgatetest.TLSSecret("tls", pair) +
		headgatetest.WithTLS(guarded("web", "web.test", "users", "proxy-body-size: 20m"), "tls web.test")})
	const size = 4 << 20
	for _, http2 := range []bool{false, true} {
		client := g.NewClient(http2)
		defer client.CloseIdleConnections()
		for range 3 {
			r, err := g.Try(client, headgatetest.Request{
				Method: "POST", Scheme: "https", Host: "web.test", HTTP2: http2, Header: basicHeader("user:secret"),
				Body: strings.NewReader(strings.Repeat("x", size)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.WantStatus(t, 200); r.Echo.BodyLength != size {
				t.Errorf("HTTP/2 %v: the backend got %d bytes", http2, r.Echo.BodyLength)
			}
			// A client may be answered before all of its body is sent; what counts is
			// that it is not let in.
			r, err = g.Try(client, headgatetest.Request{
				Method: "POST", Scheme: "https", Host: "web.test", HTTP2: http2, Header: basicHeader("user:wrong"),
				Body: strings.NewReader(strings.Repeat("x", size)),
			})
			if err == nil {
				wantRefused(t, r, "")
			}
		}
	}
}

// A change of the Secret counts from the next request on, also for passwords
// that were remembered, and needs no reload.
func TestSecretChanges(t *testing.T) {
	t.Parallel()
	const hash = "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + guarded("web", "web.test", "users") + headgatetest.Ingress("open", "open.test", "/", "one")})
	get(g, "web.test", "user:secret").WantStatus(t, 503)
	g.Apply(secret("users", "user:"+hash))
	get(g, "web.test", "user:secret").WantStatus(t, 200)
	g.Apply(secret("users", "other:"+hash))
	wantRefused(t, get(g, "web.test", "user:secret"), "")
	get(g, "web.test", "other:secret").WantStatus(t, 200)
	g.Apply(secret("users", "user:{PLAIN}fresh"))
	wantRefused(t, get(g, "web.test", "user:secret"), "")
	get(g, "web.test", "user:fresh").WantStatus(t, 200)
	g.Apply(secret("users"))
	wantRefused(t, get(g, "web.test", "user:fresh"), "")
	g.Delete(secret("users"))
	get(g, "web.test", "user:fresh").WantStatus(t, 503)
	g.Get("open.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
}

// Which routes ask, and which don't.
func TestWhereIsAsked(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + headgatetest.Service("empty") + headgatetest.Endpoints("empty") +
		secret("users", "user:{PLAIN}secret") + guarded("web", "web.test", "users") +
		headgatetest.Ingress("acme", "web.test", "/.well-known/acme-challenge", "one", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("free", "web.test", "/free", "one") +
		headgatetest.Ingress("empty", "empty.test", "/", "empty", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("bad", "bad.test", "/", "one", "auth-type: basic", "auth-secret: users", "auth-realm: a\"b") +
		headgatetest.Ingress("regex", "regex.test", "/[a-z]+/x", "one", "auth-type: basic", "auth-secret: users", "use-regex: true") +
		headgatetest.Ingress("only", "only.test", "/", "one", "auth-secret: users"),
	})
	for _, c := range []struct {
		host, path  string
		open, login int
	}{
		{"web.test", "/", 401, 200},
		{"web.test", "/.well-known/acme-challenge/x", 200, 200},
		{"web.test", "/.well-known/acme-challenge/../x", 401, 200},
		{"web.test", "/%2e%2e/free", 400, 400},
		{"web.test", "//free", 200, 200},
		{"web.test", "/free/../x", 401, 200},
		{"web.test", "/free%2f..%2fx", 401, 200},
		{"empty.test", "/", 503, 503},
		{"bad.test", "/", 503, 503},
		{"regex.test", "/a/x", 401, 200},
		{"regex.test", "/A/X", 401, 200},
		{"only.test", "/", 200, 200},
	} {
		if r := g.Get(c.host, c.path); r.Status != c.open {
			t.Errorf("%s%s without a password: status %d, want %d", c.host, c.path, r.Status, c.open)
		}
		if r := g.Do(headgatetest.Request{Host: c.host, Path: c.path, Header: basicHeader("user:secret")}); r.Status != c.login {
			t.Errorf("%s%s with a password: status %d, want %d", c.host, c.path, r.Status, c.login)
		}
	}
	if r := get(g, "only.test", "user:secret"); r.Echo.Header.Get("Authorization") == "" {
		t.Error("a backend whose route asks for nothing did not get Authorization")
	}
}

// The access log has the name, although the backend does not get it.
func TestNameInLog(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hg-log-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "access.log")
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: file, Manifests: one(t) + secret("users", "user:{PLAIN}secret") +
		guarded("web", "web.test", "users") + guarded("jump", "jump.test", "users", "proxy-buffering: on")})
	for _, host := range []string{"web.test", "jump.test"} {
		get(g, host, "user:secret").WantStatus(t, 200)
	}
	headgatetest.Eventually(t, "the log has both names", func() bool {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), " - user [") == 2
	})
}

// With a password and an auth service the request must pass both. The service
// gets the password, the backend does not.
func TestBesideAnotherService(t *testing.T) {
	t.Parallel()
	const right = "Basic dXNlcjpzZWNyZXQ="
	passwords := make(chan string, 10)
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passwords <- r.Header.Get("Authorization")
		if r.Header.Get("X-Token") != "ok" {
			w.WriteHeader(403)
		}
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + secret("users", "user:{PLAIN}secret") +
		guarded("web", "web.test", "users", "auth-url: http://"+service+"/", "auth-cache-key: $http_x_key", "proxy-body-size: 3m")})
	for _, c := range []struct {
		password, token, key string
		want, asked          int
	}{
		{"", "", "", 401, 0},
		{"", "ok", "", 401, 0},
		{right, "", "a", 403, 1},
		{right, "ok", "b", 200, 1},
		{right, "ok", "b", 200, 0},
		{"", "ok", "b", 401, 0},
	} {
		header := http.Header{"X-Token": {c.token}, "X-Key": {c.key}}
		if c.password != "" {
			header.Set("Authorization", c.password)
		}
		r := g.Do(headgatetest.Request{Host: "web.test", Header: header}).WantStatus(t, c.want)
		if r.Echo != nil && r.Echo.Header.Get("Authorization") != "" {
			t.Errorf("%+v: the backend got the password", c)
		}
		if len(passwords) != c.asked {
			t.Errorf("%+v: the service was asked %d times", c, len(passwords))
		}
		for len(passwords) > 0 {
			if got := <-passwords; got != right {
				t.Errorf("%+v: the service got %q", c, got)
			}
		}
	}
}
