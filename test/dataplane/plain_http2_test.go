package dataplane_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// plainHTTP2 is a client that speaks HTTP/2 without TLS, which it takes for granted.
func plainHTTP2(t *testing.T, g *headgatetest.Instance) *http.Client {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{
		Timeout:       headgatetest.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{Protocols: protocols, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", headgatetest.Address(g.HTTP))
		}},
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// speaksPlainHTTP2 reports whether NGINX can speak HTTP/2 and HTTP/1.1 on one port without TLS.
func speaksPlainHTTP2(t *testing.T) bool {
	t.Helper()
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return capabilities.HTTP2Directive
}

// HTTP/2 without TLS is spoken where use-http2 says so and NGINX can, beside HTTP/1.1, which is
// always spoken. It gets no further than HTTP/1.1 does.
func TestPlainHTTP2(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	pair := headgatetest.NewKeyPair(t, "tls", "tls.test")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Workers: 1, Manifests: served("web", headgatetest.StartEcho(t, "web")) +
		headgatetest.Service("grpc") + headgatetest.Endpoints("grpc", startH2C(t, &connections, http.HandlerFunc(answerGRPC))) +
		headgatetest.Ingress("web", "web.test", "/", "web") + headgatetest.Ingress("grpc", "grpc.test", "/", "grpc", "backend-protocol: GRPC") +
		headgatetest.TLSSecret("tls", pair) + headgatetest.WithTLS(headgatetest.Ingress("tls", "tls.test", "/", "web"), "tls tls.test")})
	can := speaksPlainHTTP2(t)
	checkPlainHTTP2(t, g, can)
	g.ApplyReloading(headgatetest.Config("use-http2: false"))
	headgatetest.Eventually(t, "HTTP/2 is off", func() bool {
		_, err := g.Try(plainHTTP2(t, g), headgatetest.Request{Host: "web.test"})
		return err != nil
	})
	checkPlainHTTP2(t, g, false)
	g.ApplyReloading(headgatetest.Config("use-http2: true"))
	headgatetest.Eventually(t, "HTTP/2 is as it was", func() bool {
		_, err := g.Try(plainHTTP2(t, g), headgatetest.Request{Host: "web.test"})
		return (err == nil) == can
	})
}

func checkPlainHTTP2(t *testing.T, g *headgatetest.Instance, spoken bool) {
	t.Helper()
	client := plainHTTP2(t, g)
	r, err := g.Try(client, headgatetest.Request{Host: "web.test", Path: "/x", Method: "POST", Body: strings.NewReader("hello"), Header: http.Header{"X-Forwarded-Proto": {"https"}}})
	if (err == nil) != spoken {
		t.Fatalf("HTTP/2 without TLS is spoken: %v, want %v (%v)", err == nil, spoken, err)
	}
	if spoken {
		if r.WantStatus(t, 200); r.Proto != "HTTP/2.0" || r.Echo.Proto != "HTTP/1.1" || r.Echo.BodyLength != 5 || r.Echo.Header.Get("X-Forwarded-Proto") != "http" {
			t.Errorf("%s, the backend heard %+v", r.Proto, r.Echo)
		}
		for host, status := range map[string]int{"unknown.test": 404, "tls.test": 308} {
			if r, err = g.Try(client, headgatetest.Request{Host: host}); err != nil || r.Status != status || r.Proto != "HTTP/2.0" {
				t.Errorf("%s: %+v, %v", host, r, err)
			}
		}
		plainGRPC(t, client)
	}
	if r := g.Get("web.test", "/").WantStatus(t, 200); r.Proto != "HTTP/1.1" {
		t.Errorf("%s", r.Proto)
	}
	// No upgrade leads to it, and it can't begin behind a request of HTTP/1.1.
	upgrade := g.Raw("GET / HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" +
		"GET /second HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n")
	if len(upgrade) != 2 || upgrade[0].Status != 200 || upgrade[0].Echo.Header.Get("Upgrade") != "" || upgrade[1].Echo.Target != "/second" {
		t.Errorf("an upgrade: %+v", upgrade)
	}
	late := g.Raw("GET / HTTP/1.1\r\nHost: web.test\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if len(late) != 2 || late[0].Status != 200 || late[1].Status != 400 {
		t.Errorf("HTTP/2 behind HTTP/1.1: %+v", late)
	}
}

// answerGRPC answers each message before the next one is sent.
func answerGRPC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	message := make([]byte, 9)
	for {
		if _, err := io.ReadFull(r.Body, message); err != nil {
			break
		}
		_, _ = w.Write(message)
		_ = http.NewResponseController(w).Flush()
	}
	w.Header().Set("Grpc-Status", "0")
}

func plainGRPC(t *testing.T, client *http.Client) {
	t.Helper()
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", "http://grpc.test/pkg.Service/Method", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Te": {"trailers"}, "Content-Type": {"application/grpc"}}
	sent := []byte("\x00\x00\x00\x00\x04ping")
	go func() { _, _ = writer.Write(sent) }()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for range 3 {
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(response.Body, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := writer.Write(sent); err != nil {
			t.Fatal(err)
		}
	}
	_ = writer.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("trailers %v, %v", response.Trailer, err)
	}
}
