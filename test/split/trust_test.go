package split_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
	"github.com/headgate/headgate/internal/unit/xds"
)

// A thief has the certificate of an edge, and keeps all that a control gives for it.
type thief struct {
	mu  sync.Mutex
	has map[unit.Key]wire.Resource
	// cuts are how many have come.
	cuts int
}

// steal follows a control with the certificate of an edge until the test ends.
func (p *place) steal(name string, control *process) (*thief, *grpc.ClientConn) {
	p.t.Helper()
	client, err := link.NewClient(link.ClientSettings{
		Address: control.address, CAFile: p.path("ca.crt"), CertificateFile: p.path(name + ".crt"), KeyFile: p.path(name + ".key"),
		Log: slog.New(slog.DiscardHandler),
	})
	must(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	p.t.Cleanup(func() {
		cancel()
		client.Close()
		group.Wait()
	})
	th := &thief{has: map[unit.Key]wire.Resource{}}
	group.Go(func() { client.Run(ctx) })
	group.Go(func() {
		for ctx.Err() == nil {
			// It is cut off when namespaces have come into another group, and comes again.
			_ = xds.Follow(ctx, client.Connection(), name, th.versions(), th.take)
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return th, client.Connection()
}

func (th *thief) take(_ context.Context, cut publish.Cut) error {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.cuts++
	for _, r := range cut.Resources {
		th.has[r.Key] = r
	}
	for _, key := range cut.Gone {
		delete(th.has, key)
	}
	return nil
}

func (th *thief) versions() map[unit.Key]string {
	th.mu.Lock()
	defer th.mu.Unlock()
	held := map[unit.Key]string{}
	for key, r := range th.has {
		held[key] = r.Version
	}
	return held
}

// finds reports whether a text is in something that the thief has.
func (th *thief) finds(text string) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	for key, r := range th.has {
		if strings.Contains(key.Name, text) || bytes.Contains(r.Bytes, []byte(text)) {
			return true
		}
	}
	return false
}

// ofGroups are two namespaces of different groups, each with a host that has a certificate and a password.
func ofGroups(t *testing.T, first, second string) (manifests string, keys map[string]string) {
	t.Helper()
	authority, keys := pkitest.New(t), map[string]string{}
	var text strings.Builder
	for namespace, group := range map[string]string{"first": first, "second": second} {
		pair := authority.Issue(namespace + ".test")
		// JSON has it so. Its beginning is that of any key, and its end depends on the last newline.
		keys[namespace] = base64.StdEncoding.EncodeToString([]byte(pair.Key))[40:160]
		fmt.Fprintf(&text, `---
kind: Namespace
apiVersion: v1
metadata: {name: %[1]s, annotations: {headgate.io/edge-group: %[2]s}}
---
kind: Secret
apiVersion: v1
type: kubernetes.io/tls
metadata: {namespace: %[1]s, name: tls}
stringData:
  tls.crt: %[3]q
  tls.key: %[4]q
---
kind: Secret
apiVersion: v1
metadata: {namespace: %[1]s, name: users}
stringData: {auth: "user:{PLAIN}of-%[1]s"}
---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata:
  namespace: %[1]s
  name: host
  creationTimestamp: "2025-01-01T00:00:00Z"
  annotations:
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: users
    nginx.ingress.kubernetes.io/auth-url: http://auth-of-%[1]s.test:8080/check
    nginx.ingress.kubernetes.io/server-alias: "~^alias-of-%[1]s"
spec:
  tls: [{hosts: [%[1]s.test], secretName: tls}]
  rules:
  - host: %[1]s.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`, namespace, group, pair.Certificate, pair.Key)
	}
	// One that adds to the host of another group.
	text.WriteString(`---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata:
  namespace: second
  name: intruder
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations: {nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: users}
spec:
  tls: [{hosts: [first.test], secretName: tls}]
  rules:
  - host: first.test
    http: {paths: [{path: /path-of-second, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`)
	return text.String(), keys
}

// With the certificate of an edge one gets what the edge of that group serves, and nothing of another group: no private
// key, no password, no name. When a namespace comes into another group, what the first one has is taken away.
func TestThiefOfCertificate(t *testing.T) {
	t.Parallel()
	manifests, keys := ofGroups(t, "public", "internal")
	p := newPlace(t, manifests)
	control := p.control("control", "--edge-account", "default/public=public", "--edge-account", "default/internal=internal").start().ready()
	p.issueEdge("public", "public")
	th, connection := p.steal("public", control)
	control.until("the thief has what is of the group", func() bool {
		return th.finds(keys["first"]) && th.finds("PLAIN}of-first") && th.versions()[unit.Backend.Key("/auth-of-first.test/8080")] != ""
	})
	// "alias" is of the patterns of all namespaces, which no group gets.
	for _, secret := range []string{keys["second"], "of-second", "second.test", "alias-"} {
		if th.finds(secret) {
			t.Errorf("an edge of another group gets %q", secret)
		}
	}
	// There is nothing else to ask for.
	err := connection.Invoke(t.Context(), "/grpc.health.v1.Health/Check", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("another service: %v", err)
	}
	manifests, keys = ofGroups(t, "internal", "public")
	p.apply(manifests)
	control.until("the thief has what is of the group now", func() bool { return th.finds(keys["second"]) && !th.finds("PLAIN}of-first") })
	for _, secret := range []string{keys["first"], "of-first", "first.test"} {
		if th.finds(secret) {
			t.Errorf("what is of the other group now is still there: %q", secret)
		}
	}
}

// Who has no certificate of an edge gets nothing, not even a reason.
func TestStranger(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	p.issueEdge("old", "")
	p.newAuthority()
	p.write("ca.crt", string(link.EncodeCertificates(p.authority.Certificate)))
	p.issueControl()
	p.issueEdge("new", "")
	trusted, _ := p.steal("new", control)
	control.until("an edge with a certificate gets everything", func() bool { return trusted.finds("a.test") })
	th, _ := p.steal("old", control)
	// As long as the other one takes changes.
	for _, host := range []string{"b.test", "c.test", "d.test"} {
		p.apply(one(t, host))
		control.until("an edge has the change", func() bool { return trusted.finds(host) })
	}
	if len(th.versions()) > 0 || th.cuts > 0 {
		t.Errorf("with a certificate of another authority: %d units", len(th.versions()))
	}
	connection, err := tls.Dial("tcp", control.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12})
	if err == nil {
		connection.Close()
		t.Error("TLS 1.2 is spoken")
	}
}

// Two controls give the same bytes for the same objects, so that an edge that comes from one to the other gets nothing.
func TestControlsAgree(t *testing.T) {
	t.Parallel()
	manifests, _ := ofGroups(t, "public", "internal")
	p := newPlace(t, manifests+one(t, "a.test", "b.test")+headgatetest.ConfigMap("headgate", `limit-req-status-code: "429"`))
	first, second := p.control("first").start().ready(), p.control("second").start().ready()
	p.issueEdge("edge", "")
	of, by := map[string]*thief{}, map[string]*process{"first": first, "second": second}
	for name, control := range by {
		of[name], _ = p.steal("edge", control)
		control.until("there is everything", func() bool { return of[name].finds("second.test") && of[name].finds("b.test") })
	}
	a, b := of["first"], of["second"]
	if !maps.Equal(a.versions(), b.versions()) {
		t.Errorf("versions differ:\n%v\n%v", a.versions(), b.versions())
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.has), unit.Key.Compare) {
		if !bytes.Equal(a.has[key].Bytes, b.has[key].Bytes) {
			t.Errorf("%s differs:\n%s\n%s", key, a.has[key].Bytes, b.has[key].Bytes)
		}
	}
	w := cableTo(t, first.address)
	edge := p.edge("edge", w.address()).start().ready()
	before := strings.Count(second.log.String(), "an edge has connected")
	w.lead(second.address)
	w.cut()
	second.until("the edge has come", func() bool { return strings.Count(second.log.String(), "an edge has connected") > before })
	edge.serves("a.test", http.StatusOK)
}
