package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// A fixture is a Server whose reviews refuse Ingresses that are called "bad", warn of those
// that are called "odd", and fail for "late".
type fixture struct {
	*Server
	dir       string
	authority *pkitest.Authority
	client    *http.Client
	reviewed  atomic.Pointer[networkingv1.Ingress]
}

func start(t *testing.T, change ...func(*http.Server)) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), authority: pkitest.New(t)}
	f.writeCertificate(t)
	server, err := Listen(Settings{
		Address: "127.0.0.1:0", CertificateFile: filepath.Join(f.dir, "cert"), KeyFile: filepath.Join(f.dir, "key"),
		Review: f.decide, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = server
	for _, c := range change {
		c(server.server)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	f.client = f.newClient()
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := errors.Join(server.Close(ctx), <-ended); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) newClient() *http.Client {
	trusted := x509.NewCertPool()
	trusted.AddCert(f.authority.Intermediate)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "webhook.test"}}}
}

func (f *fixture) writeCertificate(t *testing.T) {
	t.Helper()
	pair := f.authority.Issue("webhook.test")
	for name, text := range map[string]string{"cert": pair.Certificate, "key": pair.Key} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) decide(_ context.Context, ing *networkingv1.Ingress) (d review.Decision, err error) {
	f.reviewed.Store(ing)
	found := []finding.Finding{{Field: "spec", Message: "it is " + ing.Name, Effect: "none"}}
	switch ing.Name {
	case "bad":
		d.Refused = found
	case "odd":
		d.Warned = found
	case "late":
		err = review.ErrNotLoaded
	}
	return d, err
}

func (f *fixture) url() string { return "https://" + f.Address().String() + "/any/path" }

// post sends a body and returns the status and the answer's body.
func (f *fixture) post(t *testing.T, body io.Reader) (status int, text string) {
	t.Helper()
	response, err := f.client.Post(f.url(), "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(all))
}

// ask sends an AdmissionReview for an object.
func request(operation, kind, object string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","operation":%q,`+
		`"kind":{"group":"networking.k8s.io","version":"v1","kind":%q},"namespace":"shop","name":"n","object":%s}}`, operation, kind, object)
}

func named(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop"}}`, name)
}

func TestAnswers(t *testing.T) {
	f := start(t)
	for _, c := range []struct {
		name, body string
		// want is the answer without what is the same in all.
		want string
	}{
		{"good", request("CREATE", "Ingress", named("good")), `{"uid":"u-1","allowed":true}`},
		{"bad", request("CREATE", "Ingress", named("bad")), `{"uid":"u-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"spec: it is bad","reason":"BadRequest","code":400}}`},
		{"bad update", request("UPDATE", "Ingress", named("bad")), `{"uid":"u-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"spec: it is bad","reason":"BadRequest","code":400}}`},
		{"odd", request("CREATE", "Ingress", named("odd")), `{"uid":"u-1","allowed":true,"warnings":["spec: it is odd; none"]}`},
		{"delete", request("DELETE", "Ingress", "null"), `{"uid":"u-1","allowed":true}`},
		{"connect", request("CONNECT", "Pod", named("bad")), `{"uid":"u-1","allowed":true}`},
		{"status", strings.Replace(request("UPDATE", "Ingress", named("bad")), `"uid"`, `"subResource":"status","uid"`, 1), `{"uid":"u-1","allowed":true}`},
		{"kind", request("CREATE", "NetworkPolicy", named("bad")), `{"uid":"u-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"this webhook is for Ingresses of networking.k8s.io/v1, not for NetworkPolicy of networking.k8s.io/v1: correct the rules of its ValidatingWebhookConfiguration","reason":"BadRequest","code":400}}`},
		{"object", request("CREATE", "Ingress", `{"spec":5}`), `{"uid":"u-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"the object is not an Ingress of networking.k8s.io/v1","reason":"BadRequest","code":400}}`},
		{"large object", request("CREATE", "Ingress", `{"metadata":{"name":"`+strings.Repeat("a", maxObject)+`"}}`), `{"uid":"u-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"the Ingress has 3145752 bytes: must have at most 3145728","reason":"BadRequest","code":400}}`},
	} {
		status, text := f.post(t, strings.NewReader(c.body))
		want := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":` + c.want + `}`
		if status != http.StatusOK || text != want {
			t.Errorf("%s: %d %s\nwant %s", c.name, status, text, want)
		}
	}
}

func TestFailures(t *testing.T) {
	f := start(t)
	good := request("CREATE", "Ingress", named("good"))
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"empty", "", http.StatusBadRequest, "decode the AdmissionReview: unexpected end of JSON input"},
		{"no JSON", "{", http.StatusBadRequest, "decode the AdmissionReview: unexpected end of JSON input"},
		{"old version", strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), http.StatusBadRequest, `must be an AdmissionReview of admission.k8s.io/v1, not "AdmissionReview" of "admission.k8s.io/v1beta1"`},
		{"another kind", named("x"), http.StatusBadRequest, `must be an AdmissionReview of admission.k8s.io/v1, not "" of ""`},
		{"no request", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest, "the AdmissionReview must have a request with a uid"},
		{"not loaded", request("CREATE", "Ingress", named("late")), http.StatusServiceUnavailable, "review the Ingress: the objects of the cluster are not loaded yet"},
		{"too large", strings.Repeat(" ", maxBody+1), http.StatusRequestEntityTooLarge, "the request must have at most 9437184 bytes"},
	} {
		if status, text := f.post(t, strings.NewReader(c.body)); status != c.status || text != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.name, status, text, c.status, c.want)
		}
	}
	// Without a length, the size shows only on the way.
	if status, _ := f.post(t, struct{ io.Reader }{bytes.NewReader(make([]byte, maxBody+1))}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large without a length: %d", status)
	}
	response, err := f.client.Get(f.url())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %s", response.Status)
	}
}

// TestObject is what of the request makes the Ingress.
func TestObject(t *testing.T) {
	f := start(t)
	f.post(t, strings.NewReader(request("CREATE", "Ingress", `{"metadata":{"generateName":"x-"}}`)))
	ing := f.reviewed.Load()
	if ing.Namespace != "shop" || ing.Name != "n" || ing.CreationTimestamp.IsZero() {
		t.Errorf("reviewed %+v", ing.ObjectMeta)
	}
	f.post(t, strings.NewReader(request("UPDATE", "Ingress", `{"metadata":{"name":"y","namespace":"other","creationTimestamp":"2024-01-01T00:00:00Z"}}`)))
	if ing = f.reviewed.Load(); ing.Namespace != "shop" || ing.Name != "y" || ing.CreationTimestamp.Year() != 2024 {
		t.Errorf("reviewed %+v", ing.ObjectMeta)
	}
}

// TestProtocol: no HTTP/2, and no old TLS.
func TestProtocol(t *testing.T) {
	f := start(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(f.authority.Intermediate)
	config := &tls.Config{RootCAs: trusted, ServerName: "webhook.test", NextProtos: []string{"h2", "http/1.1"}}
	connection, err := tls.Dial("tcp", f.Address().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if p := connection.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("negotiated %q", p)
	}
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if old, err := tls.Dial("tcp", f.Address().String(), old); err == nil {
		old.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

// TestRotation replaces the certificate, as a Secret's volume does and file by file.
func TestRotation(t *testing.T) {
	f := start(t)
	shown := func() string {
		client := f.newClient()
		defer client.CloseIdleConnections()
		response, err := client.Post(f.url(), "", strings.NewReader(request("CREATE", "Ingress", named("good"))))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.TLS.PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	f.writeCertificate(t)
	second := shown()
	if second == first {
		t.Error("the certificate is the old one")
	}
	for _, name := range []string{"cert", "key"} {
		path := filepath.Join(f.dir, name)
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []func() error{
			func() error { return os.WriteFile(path, []byte("rubbish"), 0o600) },
			func() error { return os.Remove(path) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if shown() != second {
				t.Errorf("%s: another certificate is shown", name)
			}
		}
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f.writeCertificate(t); shown() == second {
		t.Error("the certificate is the old one after errors")
	}
}

// TestIdleConnections opens 1,000 connections that send nothing, or a part of a request:
// others are answered.
func TestIdleConnections(t *testing.T) {
	f := start(t)
	for i := range 1000 {
		connection, err := net.Dial("tcp", f.Address().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if i%2 == 0 {
			continue
		}
		secured := tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
		if _, err := fmt.Fprintf(secured, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n{", maxBody); err != nil {
			t.Fatal(err)
		}
	}
	if status, text := f.post(t, strings.NewReader(request("CREATE", "Ingress", named("good")))); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// TestConnectionLimit: connections beyond the limit are closed at once, and count no more
// once they are closed.
func TestConnectionLimit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &limited{Listener: listener, most: 1}
	accepted := make(chan net.Conn)
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- connection
		}
	}()
	dial := func() net.Conn {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return connection
	}
	first := dial()
	defer first.Close()
	inside := <-accepted
	second := dial()
	defer second.Close()
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes of a connection beyond the limit", n)
	}
	inside.Close()
	inside.Close()
	third := dial()
	defer third.Close()
	(<-accepted).Close()
}

// TestTimeouts are those of the server: a test that waits for them would take too long.
func TestTimeouts(t *testing.T) {
	f := start(t)
	s := f.server
	if s.ReadHeaderTimeout != headerTimeout || s.ReadTimeout != readTimeout || s.WriteTimeout != writeTimeout || s.IdleTimeout != idleTimeout || s.MaxHeaderBytes != maxHeader {
		t.Error("a timeout or limit is missing")
	}
	if readTimeout+reviewTimeout >= writeTimeout {
		t.Error("a review that waits as long as it may could not be answered")
	}
}

// TestSlowClient never sends the body: it must not have the connection for ever.
func TestSlowClient(t *testing.T) {
	f := start(t, func(s *http.Server) { s.ReadTimeout = 200 * time.Millisecond })
	body, end := io.Pipe()
	defer end.Close()
	response, err := f.client.Post(f.url(), "", body)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got %s", response.Status)
	}
}

// TestBodiesInMemory: what requests hold is given back, and no more is taken than allowed.
func TestBodiesInMemory(t *testing.T) {
	f := start(t)
	large := request("CREATE", "Ingress", `{"metadata":{"name":"`+strings.Repeat("a", maxObject)+`"}}`)
	f.post(t, strings.NewReader(large))
	f.post(t, strings.NewReader(strings.Repeat(" ", maxBody+1)))
	f.post(t, strings.NewReader("{"))
	// The answer is sent before the handler ends.
	if err := f.handler.bodies.Acquire(t.Context(), maxBodies); err != nil {
		t.Fatal(err)
	}
	f.handler.bodies.Release(1 << 20)
	if status, _ := f.post(t, strings.NewReader(large)); status != http.StatusServiceUnavailable {
		t.Errorf("without memory: %d", status)
	}
	if status, _ := f.post(t, strings.NewReader(request("CREATE", "Ingress", named("good")))); status != http.StatusOK {
		t.Errorf("a small request: %d", status)
	}
}

// FuzzBody sends any body: the answer is one, and has what JSON allows.
func FuzzBody(f *testing.F) {
	f.Add([]byte(request("CREATE", "Ingress", named("good"))))
	f.Add([]byte(request("UPDATE", "Ingress", named("bad"))))
	f.Add([]byte(request("CREATE", "Ingress", `{"metadata":{"name":"odd","annotations":{"a":"\u0000"}},"spec":{"rules":[{"host":"x"}]}}`)))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`))
	server, err := Listen(Settings{
		Address: "127.0.0.1:0", Review: (&fixture{}).decide, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		f.Fatal(err)
	}
	defer server.listener.Close()
	f.Fuzz(func(t *testing.T, body []byte) {
		w := &recorder{header: http.Header{}}
		r, err := http.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		server.handler.ServeHTTP(w, r)
		if w.status != 0 && w.status != http.StatusOK {
			return
		}
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(w.body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Response.UID == "" {
			t.Fatalf("answer %q: %v", w.body.Bytes(), err)
		}
		if !answer.Response.Allowed && answer.Response.Result.Message == "" {
			t.Fatal("refused without a reason")
		}
	})
}

// A recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header                  { return r.header }
func (r *recorder) WriteHeader(status int)               { r.status = status }
func (r *recorder) Write(text []byte) (n int, err error) { return r.body.Write(text) }
