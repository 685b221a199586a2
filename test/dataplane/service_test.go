package dataplane_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/headgate/headgate/internal/source/dns"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A resolver answers for names on the loopback address.
type resolver struct {
	port uint16

	mu      sync.Mutex
	records map[string]string // of a name: "1 A 192.0.2.1"; empty fails
}

func startResolver(t *testing.T) *resolver {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &resolver{port: uint16(packets.LocalAddr().(*net.UDPAddr).Port), records: map[string]string{}}
	started := make(chan struct{})
	server := &mdns.Server{PacketConn: packets, Handler: mdns.HandlerFunc(r.answer), NotifyStartedFunc: func() { close(started) }}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { server.Shutdown(); <-ended })
	return r
}

func (r *resolver) set(name, record string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[name] = record
}

func (r *resolver) answer(w mdns.ResponseWriter, q *mdns.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, name := new(mdns.Msg).SetReply(q), q.Question[0].Name
	text, ok := r.records[name]
	switch record, err := mdns.NewRR(name + " " + text); {
	case !ok:
		reply.Rcode = mdns.RcodeNameError
	case text == "" || err != nil:
		reply.Rcode = mdns.RcodeServerFailure
	case record.Header().Rrtype == q.Question[0].Qtype:
		reply.Answer = append(reply.Answer, record)
	}
	w.WriteMsg(reply)
}

// settings look names up there.
func (r *resolver) settings(t *testing.T) *dns.Settings {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return &dns.Settings{ResolvConf: conf, Port: r.port}
}

// external is a Service "name" that stands for a DNS name and a port.
func external(name, target string, port uint16) string {
	return fmt.Sprintf("---\nkind: Service\napiVersion: v1\nmetadata: {name: %s}\n"+
		"spec: {type: ExternalName, externalName: %q, ports: [{port: 80, targetPort: %d}]}\n", name, target, port)
}

func portOf(t *testing.T, address string) uint16 {
	t.Helper()
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Port()
}

// A Service outside the cluster is reached at the addresses of its name, and
// follows them without a reload and without a lost request.
func TestExternalName(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	one := headgatetest.StartEchoAt(t, "one", "127.0.0.1:0")
	port := portOf(t, one)
	headgatetest.StartEchoAt(t, "two", fmt.Sprintf("127.0.0.2:%d", port))
	r := startResolver(t)
	r.set("ext.test.", "1 A 127.0.0.1")
	r.set("other.test.", "300 A 127.0.0.2")
	names := r.settings(t)
	names.AllowLocal = true
	g := headgatetest.Start(t, headgatetest.Options{Names: names, Manifests: external("ext", "ext.test", port) +
		headgatetest.Ingress("ext", "ext.test", "/", "ext")})
	wantEcho(t, g.Get("ext.test", "/"), "one")
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	// ask asks for as long as one backend answers.
	ask := func(while string) (backend string) {
		headgatetest.Eventually(t, "another backend than "+while+" answers", func() bool {
			response, err := g.Try(client, headgatetest.Request{Host: "ext.test"})
			if err != nil || response.Status != 200 || response.Echo == nil {
				t.Fatalf("a request was lost: %v, %+v", err, response)
			}
			backend = response.Echo.Backend
			return backend != while
		})
		return backend
	}
	r.set("ext.test.", "1 A 127.0.0.2")
	if got := ask("one"); got != "two" {
		t.Errorf("%s answered, want two", got)
	}
	r.set("ext.test.", "")
	headgatetest.Eventually(t, "there is a finding", func() bool { return g.Value(g.Metrics.Findings.WithLabelValues("Unresolved")) == 1 })
	wantEcho(t, g.Get("ext.test", "/"), "two")
	r.set("ext.test.", "1 A 127.0.0.1")
	if got := ask("two"); got != "one" {
		t.Errorf("%s answered, want one", got)
	}
	// A lookup that takes long is not waited for.
	follows := func(manifests, backend string) {
		g.Apply(manifests)
		headgatetest.Eventually(t, backend+" answers", func() bool {
			response, err := g.Try(client, headgatetest.Request{Host: "ext.test"})
			return err == nil && response.Echo != nil && response.Echo.Backend == backend
		})
	}
	follows(external("ext", "other.test", port), "two")
	g.Apply(external("ext", "localhost", port))
	g.Get("ext.test", "/").WantStatus(t, 503)
	follows(external("ext", "other.test.", port), "two")
	g.Apply(headgatetest.Service("ext") + headgatetest.Endpoints("ext", one))
	wantEcho(t, g.Get("ext.test", "/"), "one")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
}

// A name that leads to this machine is not followed.
func TestExternalNameLocal(t *testing.T) {
	t.Parallel()
	one := headgatetest.StartEchoAt(t, "one", "127.0.0.1:0")
	r := startResolver(t)
	r.set("ext.test.", "300 A 127.0.0.1")
	g := headgatetest.Start(t, headgatetest.Options{Names: r.settings(t), Manifests: external("ext", "ext.test", portOf(t, one)) +
		headgatetest.Ingress("ext", "ext.test", "/", "ext") + headgatetest.Ingress("gone", "gone.test", "/", "gone")})
	g.Get("ext.test", "/").WantStatus(t, 503)
	if n := g.Value(g.Metrics.Findings.WithLabelValues("InvalidValue")); n != 1 {
		t.Errorf("%d findings for a loopback address, want 1", n)
	}
	g.Apply(external("gone", "gone.test", 80))
	g.Get("gone.test", "/").WantStatus(t, 503)
}

// clustered is a Service with an address of its own.
func clustered(name, address string, port uint16) string {
	return fmt.Sprintf("---\nkind: Service\napiVersion: v1\nmetadata: {name: %s}\nspec: {clusterIP: %s, ports: [{name: http, port: %d}]}\n",
		name, address, port)
}

// onPort is an Ingress that names a Service's port by its name.
func onPort(name, host, service, created string, annotations string) string {
	return fmt.Sprintf("---\nkind: Ingress\napiVersion: networking.k8s.io/v1\n"+
		"metadata: {name: %s, creationTimestamp: %q, annotations: {%s}}\nspec:\n  rules:\n  - host: %s\n    http:\n      paths:\n"+
		"      - {path: /, pathType: Prefix, backend: {service: {name: %s, port: {name: http}}}}\n", name, created, annotations, host, service)
}

// The oldest Ingress that uses a Service decides whether the Service's own
// address is used, for all hosts.
func TestServiceUpstream(t *testing.T) {
	t.Parallel()
	const asks, asksNot = `nginx.ingress.kubernetes.io/service-upstream: "true"`, `nginx.ingress.kubernetes.io/service-upstream: "false"`
	const early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	pod := headgatetest.StartEcho(t, "pod")
	service := headgatetest.StartEchoAt(t, "service", "127.0.0.3:0")
	objects := clustered("s", "127.0.0.3", portOf(t, service)) + headgatetest.Endpoints("s", pod)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: objects + onPort("young", "young.test", "s", late, asks)})
	wantEcho(t, g.Get("young.test", "/"), "service")
	g.Apply(onPort("old", "old.test", "s", early, ""))
	wantEcho(t, g.Get("young.test", "/"), "pod")
	wantEcho(t, g.Get("old.test", "/"), "pod")
	if n := g.Value(g.Metrics.Findings.WithLabelValues("Conflict")); n != 1 {
		t.Errorf("%d findings for the one that is overridden, want 1", n)
	}
	g.Apply(onPort("old", "old.test", "s", early, asks))
	wantEcho(t, g.Get("young.test", "/"), "service")
	wantEcho(t, g.Get("old.test", "/"), "service")
	g.Apply(headgatetest.Config("service-upstream: true") + onPort("old", "old.test", "s", early, ""))
	wantEcho(t, g.Get("old.test", "/"), "service")
	g.Apply(onPort("old", "old.test", "s", early, asksNot))
	wantEcho(t, g.Get("young.test", "/"), "pod")
	g.Delete(onPort("old", "old.test", "s", early, asksNot))
	wantEcho(t, g.Get("young.test", "/"), "service")
	g.Apply(clustered("s", "None", 80))
	wantEcho(t, g.Get("young.test", "/"), "pod")
	g.Apply(clustered("s", "127.0.0.3", portOf(t, service)))
	g.Delete(headgatetest.Endpoints("s", pod))
	wantEcho(t, g.Get("young.test", "/"), "service")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
}
