package backendprotocol_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A counted listener counts connections.
type counted struct {
	net.Listener
	accepted atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return connection, err
}

// startFastCGI runs a FastCGI backend that answers with what it heard, and as headers ask.
func startFastCGI(t *testing.T, name string) (address string, connections *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c := &counted{Listener: listener}
	go func() {
		_ = fcgi.Serve(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			w.Header().Set("X-Backend", name)
			w.Header().Set("X-Bulk", strings.Repeat("x", len(r.Header.Get("X-Bulk"))))
			_ = json.NewEncoder(w).Encode(fcgiHeard{r.Method, r.Host, r.RequestURI, string(body), r.Header, fcgi.ProcessEnv(r)})
		}))
	}()
	return listener.Addr().String(), &c.accepted
}

type fcgiHeard struct {
	Method, Host, Target, Body string
	Header                     http.Header
	Env                        map[string]string
}

func fcgiHears(t *testing.T, g *headgatetest.Instance, r headgatetest.Request) (h fcgiHeard) {
	t.Helper()
	answer := g.Do(r).WantStatus(t, 200)
	if err := json.Unmarshal([]byte(answer.Body), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

const users = "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: \"user:{PLAIN}secret\"}\n"

// TestParameters: what an Ingress's owner says reaches the backend, nothing that clients send
// replaces it, and no other route has it.
func TestParameters(t *testing.T) {
	t.Parallel()
	php, folder := startPHP(t)
	address, _ := startFastCGI(t, "a")
	script := "SCRIPT_FILENAME: " + folder + "/index.php"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: users + headgatetest.Service("a") + headgatetest.Endpoints("a", php) +
		headgatetest.Service("b") + headgatetest.Endpoints("b", address) +
		headgatetest.ConfigMap("script", script) +
		headgatetest.ConfigMap("own", script, "HTTP_X_MY_OWN: mine", "HTTP_X_GONE: ", "HTTP_HOST: vhost.test", "HTTPS: on", "SERVER_NAME: $host-x", "REMOTE_USER: $arg_user",
			"MY_PARAM: ${request_method}:$http_x_asked:$arg_none", "modHeadersAvailable: true", "QUERY_STRING: q=$uri&$args") +
		ingress("own", "backend-protocol: FCGI", "fastcgi-params-configmap: own") +
		ingress("script", "backend-protocol: FCGI", "fastcgi-params-configmap: script") +
		ingress("vhost", "backend-protocol: FCGI", "fastcgi-params-configmap: script", "upstream-vhost: other.test") +
		headgatetest.ConfigMap("rewritten", script, "PATH_TRANSLATED: $uri", "AUTH_TYPE: $request_filename") + headgatetest.ConfigMap("named", script, "REMOTE_USER: $remote_user") +
		ingress("named", "backend-protocol: FCGI", "fastcgi-params-configmap: named", "auth-type: basic", "auth-secret: users") +
		ingress("auth", "backend-protocol: FCGI", "fastcgi-params-configmap: script", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("rewrite", "rewrite.test", "/old/(.*)", "a", "ssl-redirect: false", "backend-protocol: FCGI", "fastcgi-params-configmap: rewritten", "fastcgi-index: main.php",
			"use-regex: true", "rewrite-target: /new/$1") +
		headgatetest.Ingress("plain", "plain.test", "/", "b", "ssl-redirect: false", "backend-protocol: FCGI")})
	for _, host := range []string{"own.test", "script.test"} {
		h := phpHears(t, g, headgatetest.Request{Host: host, Path: "/p?user=u&x", Header: http.Header{
			"X-My-Own": {"evil"}, "X_My_Own": {"evil"}, "X-Gone": {"evil"}, "X-Asked": {"a"}, "My-Param": {"evil"}, "My_Param": {"evil"}, "Proxy": {"evil"}, "Https": {"evil"},
			"X-Forwarded-For": {"6.6.6.6"}, "Script-Filename": {"/evil"}, "Php-Value": {"memory_limit=1"}, "Php-Admin-Value": {"memory_limit=1"},
		}})
		want := map[string]any{
			"HTTP_X_MY_OWN": "evil", "HTTP_X_GONE": "evil", "HTTP_HOST": host, "HTTPS": nil, "SERVER_NAME": host, "REMOTE_USER": nil, "MY_PARAM": nil, "QUERY_STRING": "user=u&x",
			"HTTP_X_FORWARDED_FOR": "127.0.0.1", "HTTP_X_REQUEST_ID": nil, "HTTP_PROXY": nil, "SCRIPT_FILENAME": folder + "/index.php", "HTTP_MY_PARAM": "evil", "modHeadersAvailable": nil, "DOCUMENT_ROOT": "/usr/share/nginx/html",
		}
		if host == "own.test" {
			for name, value := range map[string]any{
				"HTTP_X_MY_OWN": "mine", "HTTP_X_GONE": nil, "HTTP_HOST": "vhost.test", "HTTPS": "on", "SERVER_NAME": "own.test-x", "REMOTE_USER": "u", "MY_PARAM": "GET:a:",
				"QUERY_STRING": "q=/p&user=u&x", "modHeadersAvailable": "true",
			} {
				want[name] = value
			}
		}
		for name, value := range want {
			if h.Server[name] != value {
				t.Errorf("%s: %s is %v, want %v", host, name, h.Server[name], value)
			}
		}
		if h.Limit == "1" {
			t.Errorf("%s: a client sets what PHP may do", host)
		}
	}
	if h := phpHears(t, g, headgatetest.Request{Host: "vhost.test"}); h.Server["HTTP_HOST"] != "other.test" || h.Server["HTTP_X_FORWARDED_FOR"] != nil {
		t.Errorf("upstream-vhost: %v", h.Server["HTTP_HOST"])
	}
	h := phpHears(t, g, headgatetest.Request{Host: "rewrite.test", Path: "/old/x%20y/?q"})
	if h.Server["SCRIPT_NAME"] != "/new/x y/main.php" || h.Server["DOCUMENT_URI"] != "/new/x y/" || h.Server["REQUEST_URI"] != "/old/x%20y/?q" ||
		h.Server["PATH_TRANSLATED"] != "/new/x y/" || h.Server["AUTH_TYPE"] != "/usr/share/nginx/html/new/x y/" {
		t.Errorf("rewrite-target: %v", h.Server)
	}
	g.Get("auth.test", "/").WantStatus(t, 401)
	password := http.Header{"Authorization": {"Basic dXNlcjpzZWNyZXQ="}}
	if h := phpHears(t, g, headgatetest.Request{Host: "named.test", Header: password}); h.Server["REMOTE_USER"] != "user" || h.Server["HTTP_AUTHORIZATION"] != nil {
		t.Errorf("REMOTE_USER is %v", h.Server["REMOTE_USER"])
	}
	h = phpHears(t, g, headgatetest.Request{Host: "auth.test", Header: password})
	for _, name := range []string{"HTTP_AUTHORIZATION", "PHP_AUTH_PW", "PHP_AUTH_USER", "REMOTE_USER"} {
		if h.Server[name] != nil {
			t.Errorf("%s is %v", name, h.Server[name])
		}
	}
	if e := fcgiHears(t, g, headgatetest.Request{Host: "plain.test"}); e.Env["MY_PARAM"] != "" || e.Env["modHeadersAvailable"] != "" {
		t.Errorf("another route's parameters: %v", e.Env)
	}
}

// TestParametersChange: no change of a ConfigMap costs a reload, and a bad one closes the paths.
func TestParametersChange(t *testing.T) {
	t.Parallel()
	address, _ := startFastCGI(t, "a")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		headgatetest.ConfigMap("own", "MY_PARAM: one") + ingress("own", "backend-protocol: FCGI", "fastcgi-params-configmap: own")})
	before := g.Value(g.Metrics.Reloads)
	for _, value := range []string{"one", "two", "$request_method"} {
		g.Apply(headgatetest.ConfigMap("own", "MY_PARAM: "+value))
		want := strings.ReplaceAll(value, "$request_method", "GET")
		if h := fcgiHears(t, g, headgatetest.Request{Host: "own.test"}); h.Env["MY_PARAM"] != want {
			t.Errorf("%q: %v", value, h.Env)
		}
	}
	for _, data := range []string{"MY_OTHER_PARAM: one", "MY_PARAM: a b", "MY_PARAM: $nothing", "HTTP_X_REAL_IP: 10.0.0.1"} {
		g.Apply(headgatetest.ConfigMap("own", data))
		g.Get("own.test", "/").WantStatus(t, 503)
	}
	g.Apply(headgatetest.ConfigMap("own", "APP_ENV: x"))
	if h := fcgiHears(t, g, headgatetest.Request{Host: "own.test"}); h.Env["MY_PARAM"] != "" || h.Env["APP_ENV"] != "x" {
		t.Errorf("%v", h.Env)
	}
	g.Apply(ingress("own", "backend-protocol: FCGI", "fastcgi-params-configmap: own", "fastcgi-index: main.php"))
	if h := fcgiHears(t, g, headgatetest.Request{Host: "own.test", Path: "/x/"}); h.Env["PATH_TRANSLATED"] != "" || h.Env["APP_ENV"] != "x" {
		t.Errorf("%v", h.Env)
	}
	g.Apply(headgatetest.ConfigMap("own", "PATH_TRANSLATED: $request_filename$fastcgi_script_name"))
	if h := fcgiHears(t, g, headgatetest.Request{Host: "own.test", Path: "/x/"}); h.Env["PATH_TRANSLATED"] != "/usr/share/nginx/html/x//x/main.php" {
		t.Errorf("%v", h.Env)
	}
	if n := g.Value(g.Metrics.Reloads); n != before {
		t.Errorf("%d reloads", n-before)
	}
}

// TestAllowedParameters: the administrator allows a name, which costs a reload, and takes it back.
func TestAllowedParameters(t *testing.T) {
	t.Parallel()
	address, _ := startFastCGI(t, "a")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		headgatetest.ConfigMap("own", "MINE: $request_method") + ingress("own", "backend-protocol: FCGI", "fastcgi-params-configmap: own") + ingress("plain", "backend-protocol: FCGI")})
	g.Get("own.test", "/").WantStatus(t, 503)
	g.ApplyReloading(headgatetest.Config("global-allowed-fastcgi-params: MINE,other"))
	headgatetest.Eventually(t, "the parameter arrives", func() bool {
		r := g.Get("own.test", "/")
		return r.Status == 200 && strings.Contains(r.Body, `"MINE":"GET"`)
	})
	if h := fcgiHears(t, g, headgatetest.Request{Host: "plain.test", Header: http.Header{"Mine": {"evil"}}}); h.Env["MINE"] != "" {
		t.Errorf("%v", h.Env)
	}
	g.ApplyReloading(headgatetest.Config())
	headgatetest.Eventually(t, "the name is not allowed", func() bool { return g.Get("own.test", "/").Status == 503 })
}

// TestBecomesFastCGI: a route that changes its protocol loses no request.
func TestBecomesFastCGI(t *testing.T) {
	t.Parallel()
	address, _ := startFastCGI(t, "a")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "http")) +
		headgatetest.Service("b") + headgatetest.Endpoints("b", address) + headgatetest.ConfigMap("own", "MY_PARAM: one") + ingress("web")})
	stop := loseNone(t, g)
	g.ApplyReloading(headgatetest.Ingress("web", "web.test", "/", "b", "ssl-redirect: false", "backend-protocol: FCGI", "fastcgi-params-configmap: own"))
	headgatetest.Eventually(t, "the backend is asked by FastCGI", func() bool { return g.Get("web.test", "/").Header.Get("X-Backend") == "a" })
	stop()
	if h := fcgiHears(t, g, headgatetest.Request{Host: "web.test"}); h.Env["MY_PARAM"] != "one" {
		t.Errorf("%v", h.Env)
	}
}

// TestFastCGIConnections: connections are kept, unless the key says otherwise; bodies arrive with
// and without buffering; headers must fit.
func TestFastCGIConnections(t *testing.T) {
	t.Parallel()
	address, connections := startFastCGI(t, "a")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		ingress("web", "backend-protocol: FCGI") + ingress("streamed", "backend-protocol: FCGI", "proxy-request-buffering: off") +
		ingress("large", "backend-protocol: FCGI", "proxy-buffer-size: 32k")})
	// The client may have the end of a response before NGINX keeps the connection.
	headgatetest.Eventually(t, "a connection is used again", func() bool {
		before := connections.Load()
		fcgiHears(t, g, headgatetest.Request{Host: "web.test"})
		return before > 0 && connections.Load() == before
	})
	for _, host := range []string{"web.test", "streamed.test"} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			for _, size := range []int{0, 1, 10_000, 600_000} {
				for _, chunked := range []bool{false, true} {
					text := strings.Repeat("b", size)
					r := headgatetest.Request{Method: "POST", Scheme: scheme, HTTP2: http2, Host: host, Body: strings.NewReader(text)}
					if chunked {
						r.Body = io.MultiReader(r.Body)
					}
					if h := fcgiHears(t, g, r); h.Method != "POST" || h.Body != text {
						t.Errorf("%s, %s, HTTP/2 %v, %d bytes, chunked %v: %s with %d bytes", host, scheme, http2, size, chunked, h.Method, len(h.Body))
					}
				}
			}
		})
	}
	bulk := http.Header{"X-Bulk": {strings.Repeat("x", 7000)}}
	g.Do(headgatetest.Request{Host: "web.test", Header: bulk}).WantStatus(t, 502)
	if h := fcgiHears(t, g, headgatetest.Request{Host: "large.test", Header: bulk}); len(h.Header.Get("X-Bulk")) != 7000 {
		t.Errorf("%v", h.Header)
	}
	g.ApplyReloading(headgatetest.Config("upstream-keepalive-connections: 0"))
	headgatetest.Eventually(t, "no connection is kept", func() bool {
		before := connections.Load()
		for range 3 {
			fcgiHears(t, g, headgatetest.Request{Host: "web.test"})
		}
		return connections.Load() == before+3
	})
}

// TestFastCGIWithOthers: canaries, copies and headers of answers are as with HTTP.
func TestFastCGIWithOthers(t *testing.T) {
	t.Parallel()
	main, _ := startFastCGI(t, "main")
	other, _ := startFastCGI(t, "canary")
	copies := make(chan string, 10)
	mirror := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		copies <- r.Method + " " + r.RequestURI + " " + string(body)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", main) + headgatetest.Service("b") + headgatetest.Endpoints("b", other) +
		headgatetest.Config("global-allowed-response-headers: X-Added") + headgatetest.ConfigMap("headers", "X-Added: 1") + headgatetest.ConfigMap("own", "MY_PARAM: one") +
		ingress("web", "backend-protocol: FCGI", "fastcgi-params-configmap: own", "custom-headers: default/headers", "mirror-target: http://"+mirror+"$request_uri") +
		headgatetest.Ingress("canary", "web.test", "/", "b", "canary: true", "canary-by-header: X-Canary", "backend-protocol: FCGI")})
	for header, want := range map[string]string{"never": "main", "always": "canary"} {
		r := g.Do(headgatetest.Request{Method: "POST", Host: "web.test", Path: "/x?y", Header: http.Header{"X-Canary": {header}}, Body: strings.NewReader("body")}).WantStatus(t, 200)
		if r.Header.Get("X-Backend") != want || r.Header.Get("X-Added") != "1" || !strings.Contains(r.Body, `"MY_PARAM":"one"`) {
			t.Errorf("%s: %v %s", header, r.Header, r.Body)
		}
		if got := <-copies; got != "POST /x?y body" {
			t.Errorf("the copy: %q", got)
		}
	}
}

// TestParametersAndErrorServices: a service that answers instead of the backend gets none of
// its parameters.
func TestParametersAndErrorServices(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("pages") + headgatetest.Endpoints("pages", headgatetest.StartEcho(t, "pages")) +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", "127.0.0.1:1") + headgatetest.ConfigMap("own", "HTTP_X_KEY: secret", "HTTP_X_GONE: ") +
		headgatetest.Ingress("a", "a.test", "/", "dead", "backend-protocol: FCGI", "fastcgi-params-configmap: own", "custom-http-errors: 502", "default-backend: pages")})
	h := g.Get("a.test", "/").WantStatus(t, 200).Echo.Header
	if h.Get("X-Code") != "502" || h.Get("X-Key") != "" {
		t.Errorf("the error service gets %v", h)
	}
}
