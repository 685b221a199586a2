package tracing_test

import (
	"context"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/collectortest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// files writes a certificate for the loopback address, its key, and that of its authority.
func files(t *testing.T) (certificate, key, authority string) {
	t.Helper()
	pki := pkitest.New(t)
	pair := pki.IssueAs(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, "collector.test")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("chain.pem", pair.Chain), write("key.pem", pair.Key), write("root.pem", pkitest.PEM(pki.Root))
}

func startCollector(t *testing.T, options collectortest.Options) *collectortest.Collector {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a collector, which takes minutes once")
	}
	return collectortest.Start(t, options)
}

// TestExport: a collector gets what a worker reports, by each protocol.
func TestExport(t *testing.T) {
	certificate, key, authority := files(t)
	plain := startCollector(t, collectortest.Options{})
	closed := startCollector(t, collectortest.Options{Certificate: certificate, Key: key, Token: "s3cret-token"})
	secure := []string{"CERTIFICATE=" + authority, "HEADERS=authorization=Bearer%20s3cret-token"}
	for name, c := range map[string]struct {
		collector *collectortest.Collector
		key       string
		variables []string
	}{
		"grpc":                      {plain, plain.GRPC, nil},
		"grpc of the environment":   {plain, "", []string{"ENDPOINT=http://" + plain.GRPC, "COMPRESSION=gzip"}},
		"http":                      {plain, plain.HTTP, []string{"PROTOCOL=http/protobuf"}},
		"http as JSON":              {plain, plain.HTTP, []string{"PROTOCOL=http/json"}},
		"http of the environment":   {plain, "", []string{"TRACES_PROTOCOL=http/protobuf", "PROTOCOL=grpc", "TRACES_ENDPOINT=http://" + plain.HTTP + "/v1/traces"}},
		"the key wins":              {plain, plain.GRPC, []string{"ENDPOINT=http://" + closed.GRPC}},
		"grpc and TLS":              {closed, closed.GRPC, secure},
		"http and TLS":              {closed, closed.HTTP, append(secure, "PROTOCOL=http/protobuf")},
		"grpc and TLS, environment": {closed, "", append(secure, "ENDPOINT=https://"+closed.GRPC)},
		"http and TLS, environment": {closed, "", append(secure, "PROTOCOL=http/protobuf", "ENDPOINT=https://"+closed.HTTP)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range c.variables {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
			}
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,host.name=edge-7")
			f := start(t)
			f.Configure(to(c.key))
			f.report(spans("GET /" + name))
			var got *collectortest.Span
			headgatetest.Eventually(t, "the collector has the span", func() bool {
				for _, span := range c.collector.Spans() {
					if span.Name == "GET /"+name {
						got = &span
					}
				}
				return got != nil
			})
			checkSpan(t, *got)
			headgatetest.Eventually(t, "it is counted", func() bool { return f.exported() == 1 })
			if text := f.log.String(); text != "" {
				t.Errorf("logged:\n%s", text)
			}
		})
	}
}

func checkSpan(t *testing.T, s collectortest.Span) {
	t.Helper()
	// The flags: sampled, and a parent that is known to be remote.
	if s.Trace != "4bf92f3577b34da6a3ce929d0e0e4736" || s.ID != "0000000000000001" || s.Parent != "b7ad6b7169203331" || s.State != "vendor=1" || s.Kind != 2 || s.Flags != 0x301 {
		t.Errorf("identity: %+v", s)
	}
	if s.Start != 1700000000000001000 || s.End != 1700000000250001000 || s.Status != (collectortest.Status{Code: 2}) {
		t.Errorf("times or status: %+v", s)
	}
	if s.Attributes["http.request.method"] != "GET" || s.Attributes["http.response.status_code"] != "502" || s.Attributes["error.type"] != "502" || len(s.Attributes) != 4 {
		t.Errorf("attributes: %v", s.Attributes)
	}
	for name, want := range map[string]string{
		"service.name": "edge", "service.version": "1.2.3", "k8s.pod.name": "headgate-0", "k8s.namespace.name": "ingress",
		"host.name": "edge-7", "deployment.environment.name": "test", "telemetry.sdk.language": "go",
	} {
		if s.Resource[name] != want {
			t.Errorf("the resource has %s=%v, want %s", name, s.Resource[name], want)
		}
	}
	if s.Scope != (collectortest.Scope{Name: "headgate", Version: "1.2.3"}) {
		t.Errorf("scope: %v", s.Scope)
	}
}

// TestRefusedExport: without what the collector asks for, spans are dropped and counted, and
// no credential is logged.
func TestRefusedExport(t *testing.T) {
	certificate, key, authority := files(t)
	_, _, other := files(t)
	c := startCollector(t, collectortest.Options{Certificate: certificate, Key: key, Token: "s3cret-token"})
	for name, one := range map[string]struct{ address, protocol, authority, header, want string }{
		"grpc, token":     {c.GRPC, "grpc", authority, "wr0ng-token", "rejects the credentials"},
		"http, token":     {c.HTTP, "http/protobuf", authority, "wr0ng-token", "rejects the credentials"},
		"grpc, authority": {c.GRPC, "grpc", other, "s3cret-token", "certificate"},
		"http, authority": {c.HTTP, "http/protobuf", other, "s3cret-token", "certificate"},
		"other protocol":  {c.HTTP, "grpc", authority, "s3cret-token", "spans were not exported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", one.protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", one.authority)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20"+one.header)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
			f := start(t)
			f.Configure(to(one.address))
			f.report(many(3))
			headgatetest.Eventually(t, "the spans are dropped", func() bool { return f.dropped("export") == 3 })
			headgatetest.Eventually(t, "the log says why", func() bool { return strings.Contains(f.log.String(), one.want) })
			if text := f.log.String(); strings.Contains(text, one.header) || strings.Count(text, "\n") != 1 {
				t.Errorf("logged:\n%s", text)
			}
			if f.exported() != 0 || len(c.Spans()) != 0 {
				t.Error("the collector took spans")
			}
		})
	}
}

// TestCollectorAway: what a collector that is away does not get is dropped and counted. Once it is
// back, it gets spans.
func TestCollectorAway(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
			c := startCollector(t, collectortest.Options{})
			f := start(t)
			if protocol == "grpc" {
				f.Configure(to(c.GRPC))
			} else {
				f.Configure(to(c.HTTP))
			}
			f.report(many(10))
			await(t, c, 10)
			c.Kill()
			f.report(many(20))
			headgatetest.Eventually(t, "spans are dropped", func() bool { return f.dropped("export") == 20 })
			c.Start()
			headgatetest.Eventually(t, "the collector gets spans again", func() bool {
				f.report(many(1))
				return len(c.Spans()) > 10
			})
			headgatetest.Eventually(t, "all are counted", func() bool {
				f.mu.Lock()
				sent := 30 + f.last - 2
				f.mu.Unlock()
				return f.exported()+f.dropped("export")+f.dropped("queue") == sent
			})
			if n := strings.Count(f.log.String(), "spans were not exported"); n != 1 {
				t.Errorf("%d lines in the log, want 1:\n%s", n, f.log.String())
			}
		})
	}
}

// TestSlowCollector: what is too much for the collector is dropped and counted, while reports are
// fetched on.
func TestSlowCollector(t *testing.T) {
	c := startCollector(t, collectortest.Options{Delay: 500 * time.Millisecond})
	f := start(t)
	settings := to(c.GRPC)
	settings.QueueSize, settings.BatchSize = 10, 5
	f.Configure(settings)
	for range 5 {
		f.report(many(100))
	}
	headgatetest.Eventually(t, "all spans are counted", func() bool { return f.exported()+f.dropped("queue")+f.dropped("export") == 500 })
	if f.dropped("queue") == 0 || f.exported() < 5 {
		t.Errorf("%d spans exported, %d dropped by the queue, %d by the export", f.exported(), f.dropped("queue"), f.dropped("export"))
	}
	if f.dropped("export") == 0 && len(c.Spans()) != f.exported() {
		t.Errorf("the collector has %d spans, and %d are counted as exported", len(c.Spans()), f.exported())
	}
}

// TestChangedCollector: with new settings, what waits goes to the old collector, and what
// comes then to the new one. Workers' last spans are exported after tracing is switched off, and
// then nothing is fetched any more.
func TestChangedCollector(t *testing.T) {
	one, two := startCollector(t, collectortest.Options{}), startCollector(t, collectortest.Options{})
	f := start(t)
	over := make(chan time.Time)
	f.SetLinger(over)
	late := to(one.GRPC)
	late.Delay = time.Hour
	f.Configure(late)
	f.report(spans("for one"))
	if n := len(one.Spans()); n != 0 {
		t.Errorf("%d spans did not wait for others", n)
	}
	late.Collector, late.ServiceName = two.GRPC, "other"
	f.Configure(late)
	if got := await(t, one, 1); got[0].Name != "for one" || len(got) != 1 {
		t.Errorf("the first collector got %v", got)
	}
	f.report(spans("for two"))
	late.Collector = ""
	f.Configure(late)
	f.report(spans("last"))
	over <- time.Now()
	got := await(t, two, 2)
	if got[0].Name != "for two" || got[0].Resource["service.name"] != "other" || got[1].Name != "last" {
		t.Errorf("the second collector got %v", got)
	}
	asked := f.fetches()
	f.add(spans("too late"))
	// Settings that are off again change nothing.
	f.Configure(late)
	time.Sleep(5 * testInterval)
	if f.fetches() != asked {
		t.Error("reports are fetched although tracing is off")
	}
	late.Collector = one.GRPC
	f.Configure(late)
	headgatetest.Eventually(t, "reports are fetched again", func() bool { return f.fetches() > asked })
}

// TestStop: at the end everything is exported, if the collector is there.
func TestStop(t *testing.T) {
	c := startCollector(t, collectortest.Options{})
	f := start(t)
	late := to(c.GRPC)
	late.Delay = time.Hour
	f.Configure(late)
	f.report(many(5))
	f.add(spans("last"))
	f.stop()
	f.Flush(context.Background())
	if n := len(c.Spans()); n != 6 || f.exported() != 6 {
		t.Errorf("the collector has %d spans and %d are counted, want 6", n, f.exported())
	}

	t.Run("away", func(t *testing.T) {
		c.Kill()
		f := start(t)
		f.Configure(late)
		f.report(many(5))
		f.stop()
		f.Flush(context.Background())
		if n := f.dropped("export"); n != 5 {
			t.Errorf("%d spans are counted as dropped, want 5", n)
		}
	})
}
