package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Each kind of request is counted once, however it ends, and only when it is over.
func TestKindsOfRequestsAreCounted(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	switching := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	var connections atomic.Int32
	pair := headgatetest.NewKeyPair(t, "tls", "tls.test")
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 2, Traffic: headgatetest.Traffic(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + served("slow", slow) + served("switching", switching) +
			served("retried", "127.0.0.1:1", headgatetest.StartEcho(t, "retried")) +
			headgatetest.Service("empty") + headgatetest.Endpoints("empty") +
			headgatetest.Service("grpc") + headgatetest.Endpoints("grpc", startH2C(t, &connections, http.HandlerFunc(answerGRPC))) +
			headgatetest.Ingress("slow", "slow.test", "/", "slow") + headgatetest.Ingress("timeout", "timeout.test", "/", "slow", "proxy-read-timeout: 1", "proxy-next-upstream: off") +
			headgatetest.Ingress("switching", "switching.test", "/", "switching") + headgatetest.Ingress("retried", "retried.test", "/", "retried") +
			headgatetest.Ingress("empty", "empty.test", "/", "empty") + headgatetest.Ingress("grpc", "tls.test", "/", "grpc", "backend-protocol: GRPC") +
			headgatetest.Ingress("small", "small.test", "/", "one", "proxy-body-size: 1k") +
			headgatetest.Ingress("replaced", "replaced.test", "/", "empty", "custom-http-errors: 503", "default-backend: one") +
			headgatetest.Ingress("below", "below.test", "/a/", "one") +
			headgatetest.TLSSecret("tls", pair) + headgatetest.WithTLS(headgatetest.Ingress("tls", "tls.test", "/web", "one"), "tls tls.test"),
	})

	// One that the client leaves, and one whose backend takes too long.
	gone := headgatetest.Dial(t, g.HTTP)
	fmt.Fprint(gone, "GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n")
	<-arrived
	gone.Close()
	late := make(chan int, 1)
	go func() {
		client := g.NewClient(false)
		r, err := g.Try(client, headgatetest.Request{Host: "timeout.test", Path: "/"})
		if err != nil {
			t.Error(err)
		}
		late <- r.Status
	}()
	<-arrived
	if status := <-late; status != 504 {
		t.Errorf("a backend that does not answer: status %d", status)
	}

	upgrade := headgatetest.Dial(t, g.HTTP)
	fmt.Fprint(upgrade, "GET / HTTP/1.1\r\nHost: switching.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if _, err := io.ReadFull(upgrade, make([]byte, len("HTTP/1.1 101"))); err != nil {
		t.Fatal(err)
	}
	upgrade.Close()

	for range 4 {
		g.Get("retried.test", "/").WantStatus(t, 200)
	}
	g.Get("empty.test", "/").WantStatus(t, 503)
	g.Get("replaced.test", "/").WantStatus(t, 200)
	g.Get("below.test", "/a").WantStatus(t, 301)
	g.Get("below.test", "/elsewhere").WantStatus(t, 404)
	g.Do(headgatetest.Request{Method: "POST", Host: "small.test", Body: strings.NewReader(strings.Repeat("x", 2000))}).WantStatus(t, 413)
	g.Do(headgatetest.Request{Method: "PROPFIND", Host: "small.test"}).WantStatus(t, 200)
	g.Do(headgatetest.Request{Method: "INVENTED", Host: "small.test"}).WantStatus(t, 200)
	g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: "tls.test", Path: "/web"}).WantStatus(t, 200)
	g.Do(headgatetest.Request{
		Method: "POST", Scheme: "https", HTTP2: true, Host: "tls.test", Path: "/pkg.Service/Method", Body: strings.NewReader("\x00\x00\x00\x00\x04ping"),
		Header: http.Header{"Te": {"trailers"}, "Content-Type": {"application/grpc"}},
	}).WantStatus(t, 200)
	for range 2 {
		g.Raw("GET / HTTP/1.1\r\nHost: small.test\r\n\r\nGET /%zz HTTP/1.1\r\nHost: small.test\r\nConnection: close\r\n\r\n")
	}
	wantSamples(t, g, requestsFamily, []string{"ingress", "path", "method", "status"}, map[string]int{
		"ingress=slow path=/ method=GET status=499": 1, "ingress=timeout path=/ method=GET status=504": 1,
		"ingress=switching path=/ method=GET status=101": 1, "ingress=retried path=/ method=GET status=200": 4,
		"ingress=empty path=/ method=GET status=503": 1, "ingress=replaced path=/ method=GET status=200": 1,
		"ingress=below path=/a/ method=GET status=301": 1, "ingress=below path=/ method=GET status=404": 1,
		"ingress=small path=/ method=POST status=413": 1, "ingress=small path=/ method=PROPFIND status=200": 1,
		"ingress=small path=/ method=UNKNOWN status=200": 1, "ingress=small path=/ method=GET status=200": 2,
		"ingress=tls path=/web method=GET status=200": 1, "ingress=grpc path=/ method=POST status=200": 1,
	})
	// NGINX refuses a path that it can't read before it is known what it is for.
	wantSamples(t, g, uncountedFamily, []string{"reason"}, map[string]int{"reason=ingress": 2, "reason=replaced": 0, "reason=lost": 0})
	// A retried request has several times to connect: it has no value, as in ingress-nginx.
	if n := samples(t, g, "nginx_ingress_controller_connect_duration_seconds", "ingress")["ingress=retried"]; n < 1 || n > 3 {
		t.Errorf("%d values of times to connect for requests of which some were retried", n)
	}
}

// With native histograms, workers count buckets of both kinds; with report-status-classes, classes.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	settings := headgatetest.Traffic()
	schema := int32(3)
	settings.Schema, settings.MaxBuckets, settings.StatusClasses, settings.PerHost = &schema, 100, true, false
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 2, Traffic: settings, Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one"),
	})
	for range 20 {
		g.Get("a.test", "/").WantStatus(t, 200)
	}
	g.Get("unknown.test", "/").WantStatus(t, 404)
	wantSamples(t, g, requestsFamily, []string{"host", "ingress", "status"}, map[string]int{"ingress=web status=2xx": 20, "status=4xx": 1})
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range families {
		native := f.GetName() == "nginx_ingress_controller_request_size" || f.GetName() == "nginx_ingress_controller_request_duration_seconds"
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			if !native || h.GetSampleCount() != 20 {
				continue
			}
			checked++
			sum, bucket := h.GetZeroCount(), int64(0)
			for _, delta := range h.GetPositiveDelta() {
				bucket += delta
				sum += uint64(bucket)
			}
			if sum != 20 || len(h.GetBucket()) == 0 {
				t.Errorf("%s: %d values in native buckets, %d others; want 20 in both", f.GetName(), sum, len(h.GetBucket()))
			}
		}
	}
	if checked != 2 {
		t.Errorf("%d native histograms", checked)
	}
}
