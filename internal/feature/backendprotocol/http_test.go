package backendprotocol_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A heard is what a backend with TLS saw of a request.
type heard struct {
	From, Proto, Version, Cipher, Name, Client, Host string
}

// startTLS runs a backend with TLS, which asks for a certificate and takes any.
func startTLS(t *testing.T, pair headgatetest.KeyPair) string {
	t.Helper()
	own, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h := heard{r.RemoteAddr, r.Proto, tls.VersionName(r.TLS.Version), tls.CipherSuiteName(r.TLS.CipherSuite), r.TLS.ServerName, "", r.Host}
		if len(r.TLS.PeerCertificates) > 0 {
			h.Client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		if r.URL.Path == "/headers" {
			w.Header().Set("X-Bulk", strings.Repeat("x", 9000))
		}
		w.Header().Set("Trailer", "Grpc-Status")
		_ = json.NewEncoder(w).Encode(h)
		w.Header().Set("Grpc-Status", "5")
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"}}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func hears(t *testing.T, g *headgatetest.Instance, scheme, host, path string) heard {
	t.Helper()
	r := g.Do(headgatetest.Request{Scheme: scheme, Host: host, Path: path}).WantStatus(t, 200)
	var h heard
	if err := json.Unmarshal([]byte(r.Body), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// secret is a Secret with a certificate and the CA of backends; either may be left out.
func secret(name string, pair headgatetest.KeyPair, ca string) string {
	text := strings.Replace(headgatetest.TLSSecret(name, pair), "type: kubernetes.io/tls", "type: Opaque", 1)
	if pair.Key == "" {
		text = text[:strings.Index(text, "  tls.crt")]
	}
	if ca == "" {
		return text
	}
	return text + "  ca.crt: |\n    " + strings.ReplaceAll(strings.TrimSpace(ca), "\n", "\n    ") + "\n"
}

func ingress(name string, annotations ...string) string {
	return headgatetest.Ingress(name, name+".test", "/", "a", append([]string{"ssl-redirect: false"}, annotations...)...)
}

// TestConnections: one backend is asked by routes that differ in one thing each. Each has a
// connection of its own, which it uses again, and a verification that fails does so although
// others are connected.
func TestConnections(t *testing.T) {
	t.Parallel()
	backend, other := headgatetest.NewKeyPair(t, "backend", "backend.test"), headgatetest.NewKeyPair(t, "other", "backend.test")
	one, two := headgatetest.NewKeyPair(t, "one"), headgatetest.NewKeyPair(t, "two")
	address := startTLS(t, backend)
	base := func(changes ...string) []string {
		values := map[string]string{
			"backend-protocol": "HTTPS", "proxy-ssl-secret": "default/one", "proxy-ssl-verify": "on", "proxy-ssl-name": "backend.test", "proxy-ssl-server-name": "on",
		}
		for _, change := range changes {
			name, value, _ := strings.Cut(change, ": ")
			values[name] = value
		}
		var list []string
		for name, value := range values {
			list = append(list, name+": "+value)
		}
		return list
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		secret("one", one, backend.Certificate) + secret("two", two, backend.Certificate) + secret("three", one, other.Certificate) +
		secret("alone", headgatetest.KeyPair{}, backend.Certificate) + secret("bare", one, "") +
		ingress("plain") + ingress("https", "backend-protocol: https") + ingress("base", base()...) +
		ingress("two", base("proxy-ssl-secret: default/two")...) + ingress("ca", base("proxy-ssl-secret: default/three")...) +
		ingress("alone", base("proxy-ssl-secret: default/alone")...) +
		ingress("name", base("proxy-ssl-name: wrong.test")...) + ingress("nameless", base("proxy-ssl-name: ")...) +
		ingress("silent", base("proxy-ssl-server-name: off")...) + ingress("unverified", base("proxy-ssl-verify: off")...) +
		ingress("version", base("proxy-ssl-protocols: TLSv1.3")...) + ingress("ciphers", base("proxy-ssl-ciphers: ECDHE-ECDSA-AES256-GCM-SHA384")...) +
		ingress("depth", base("proxy-ssl-verify-depth: 2")...) +
		ingress("grpcs", base("backend-protocol: GRPCS")...) + ingress("auto", base("backend-protocol: AUTO_HTTP")...) +
		ingress("bare", base("proxy-ssl-secret: default/bare")...) + ingress("missing", base("proxy-ssl-secret: default/missing")...) +
		ingress("without", "backend-protocol: HTTPS", "proxy-ssl-verify: on") +
		ingress("named", "backend-protocol: HTTPS", "proxy-ssl-server-name: on", "proxy-ssl-name: be.example.test", "proxy-ssl-protocols: TLSv1.2", "proxy-ssl-ciphers: ECDHE-ECDSA-AES256-GCM-SHA384"),
	})
	seen := map[string]string{}
	wants := map[string]heard{
		"base":       {Client: "one", Name: "backend.test", Version: "TLS 1.2"},
		"two":        {Client: "two", Name: "backend.test", Version: "TLS 1.2"},
		"alone":      {Client: "", Name: "backend.test", Version: "TLS 1.2"},
		"silent":     {Client: "one", Version: "TLS 1.2"},
		"unverified": {Client: "one", Name: "backend.test", Version: "TLS 1.2"},
		"version":    {Client: "one", Name: "backend.test", Version: "TLS 1.3"},
		"ciphers":    {Client: "one", Name: "backend.test", Version: "TLS 1.2", Cipher: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		"depth":      {Client: "one", Name: "backend.test", Version: "TLS 1.2"},
		"grpcs":      {Client: "one", Name: "backend.test", Version: "TLS 1.2", Proto: "HTTP/2.0"},
		"https":      {Version: "TLS 1.3", Proto: "HTTP/1.1"},
		// Without a Secret.
		"named": {Name: "be.example.test", Version: "TLS 1.2", Cipher: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
	}
	for name, want := range wants {
		ask := func() heard {
			got := hears(t, g, "http", name+".test", "/")
			if of, taken := seen[got.From]; taken && of != name {
				t.Errorf("%s got the connection of %s", name, of)
			}
			seen[got.From] = name
			return got
		}
		got := ask()
		// The client may have the end of a response before NGINX keeps the connection.
		last := got.From
		headgatetest.Eventually(t, name+" keeps its connection", func() bool {
			before := last
			last = ask().From
			return last == before
		})
		if got.Client != want.Client || got.Name != want.Name || got.Version != want.Version || got.Host != name+".test" ||
			want.Cipher != "" && got.Cipher != want.Cipher || want.Proto != "" && got.Proto != want.Proto {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for name, status := range map[string]int{"ca": 502, "name": 502, "nameless": 502, "plain": 400, "bare": 503, "missing": 503, "without": 503} {
		g.Get(name+".test", "/").WantStatus(t, status)
	}
	if got := hears(t, g, "https", "auto.test", "/"); got.Client != "one" {
		t.Errorf("AUTO_HTTP by https: %+v", got)
	}
	if r := g.Get("auto.test", "/").WantStatus(t, 400); !strings.Contains(r.Body, "HTTPS server") {
		t.Errorf("AUTO_HTTP by http: %q", r.Body)
	}
}

// TestShared: a Secret is that of the host and the namespace, unless the key says otherwise.
func TestShared(t *testing.T) {
	t.Parallel()
	backend, one := headgatetest.NewKeyPair(t, "backend", "backend.test"), headgatetest.NewKeyPair(t, "one")
	path := func(name, path string, annotations ...string) string {
		return headgatetest.Ingress(name, "a.test", path, "a", append([]string{"ssl-redirect: false", "backend-protocol: HTTPS"}, annotations...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", startTLS(t, backend)) +
		secret("one", one, backend.Certificate) + path("with", "/with", "proxy-ssl-secret: default/one") + path("without", "/without")})
	for _, p := range []string{"/with", "/without"} {
		if got := hears(t, g, "http", "a.test", p); got.Client != "one" {
			t.Errorf("%s: %+v", p, got)
		}
	}
	g.Apply(headgatetest.Config("proxy-ssl-location-only: true"))
	headgatetest.Eventually(t, "the key counts", func() bool { return hears(t, g, "http", "a.test", "/without").Client == "" })
	if got := hears(t, g, "http", "a.test", "/with"); got.Client != "one" {
		t.Errorf("%+v", got)
	}
}

// loseNone sends requests to web.test until stop is called. All must be answered 200.
func loseNone(t *testing.T, g *headgatetest.Instance) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := sync.WaitGroup{}
	done.Go(func() {
		client := g.NewClient(false)
		defer client.CloseIdleConnections()
		for ctx.Err() == nil {
			if r, err := g.Try(client, headgatetest.Request{Host: "web.test"}); err != nil || r.Status != 200 {
				t.Errorf("a request was lost: %d, %v", r.Status, err)
				return
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// TestRotation: another certificate, and another CA, take effect without a lost request.
func TestRotation(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	backend, further := headgatetest.NewKeyPair(t, "backend", "backend.test"), headgatetest.NewKeyPair(t, "further", "backend.test")
	// Without the usual drain, a reload can lose a request that is on its way.
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", startTLS(t, backend)) +
		secret("one", headgatetest.NewKeyPair(t, "old"), backend.Certificate) +
		ingress("web", "backend-protocol: HTTPS", "proxy-ssl-secret: default/one", "proxy-ssl-verify: on", "proxy-ssl-name: backend.test")})
	if got := hears(t, g, "http", "web.test", "/"); got.Client != "old" {
		t.Errorf("%+v", got)
	}
	stop := loseNone(t, g)
	g.ApplyReloading(secret("one", headgatetest.NewKeyPair(t, "new"), backend.Certificate))
	headgatetest.Eventually(t, "the new certificate is shown", func() bool { return hears(t, g, "http", "web.test", "/").Client == "new" })
	g.ApplyReloading(secret("one", headgatetest.NewKeyPair(t, "newest"), further.Certificate+backend.Certificate))
	headgatetest.Eventually(t, "the newest certificate is shown", func() bool { return hears(t, g, "http", "web.test", "/").Client == "newest" })
	stop()
	g.ApplyReloading(secret("one", headgatetest.NewKeyPair(t, "newest"), further.Certificate))
	headgatetest.Eventually(t, "the CA counts", func() bool { return g.Get("web.test", "/").Status == 502 })
}

// TestBuffer: the headers of a gRPC backend must fit into the buffer of the key.
func TestBuffer(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") +
		headgatetest.Endpoints("a", startTLS(t, headgatetest.NewKeyPair(t, "backend"))) +
		ingress("grpcs", "backend-protocol: GRPCS") + ingress("other", "backend-protocol: GRPCS", "proxy-buffer-size: 16k")})
	for _, host := range []string{"grpcs.test", "other.test"} {
		g.Get(host, "/headers").WantStatus(t, 502)
	}
	g.ApplyReloading(headgatetest.Config("grpc-buffer-size-kb: 16"))
	hears(t, g, "http", "grpcs.test", "/headers")
	g.Apply(headgatetest.Config())
	headgatetest.Eventually(t, "the default counts", func() bool { return g.Get("grpcs.test", "/headers").Status == 502 })
}
