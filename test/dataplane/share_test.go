package dataplane_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// largeIngress has a host with so many paths, which take about 100 bytes each.
func largeIngress(namespace, host string, paths int) metav1.Object {
	kind := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll(host, ".", "-")}}
	rule := &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &kind, Backend: backend}}}
	for i := range paths {
		path := fmt.Sprintf("/api/v1/%s/some/longer/path/of/a/real/service/%d", host, i)
		rule.Paths = append(rule.Paths, networkingv1.HTTPIngressPath{Path: path, PathType: &kind, Backend: backend})
	}
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: rule}}}
	return ing
}

// resident is the anonymous memory of a process, in MiB.
func resident(t *testing.T, pid int) int { return anonymous(t, pid) >> 20 }

// Many hosts of one namespace, which a worker can't hold together, are asked for in turn.
// The hosts of another namespace stay decoded, and their requests are as fast as before.
func TestOneNamespaceDoesNotTakeTheCache(t *testing.T) {
	headgatetest.Long(t)
	const large, small = 40, 20
	backend := startWire(t, "X-Wire: a\r\n").address
	var manifests strings.Builder
	for i := range small {
		manifests.WriteString(ruled(fmt.Sprint("good", i), fmt.Sprintf("good%d.test Prefix / a", i), fmt.Sprintf("good%d.test Prefix /a/b a", i)))
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", backend) + inNamespace("evil", served("a", backend)) + manifests.String()})
	for i := range large {
		g.ApplyObjects(largeIngress("evil", fmt.Sprintf("evil%d.test", i), 2500))
	}
	askGood := func() {
		for i := range small {
			g.Get(fmt.Sprintf("good%d.test", i), "/").WantStatus(t, 200)
		}
	}
	askGood()
	idle := median(t, g, "good1.test")
	before := resident(t, g.State().PID)

	stop := attack{host: "evil%d.test", path: "/", among: large}.run(t, g)
	took, longest := time.Hour, time.Duration(0)
	deadline := time.Now().Add(2 * time.Second)
	for round := 0; round < 3 || time.Now().Before(deadline); round++ {
		var all []time.Duration
		for i := range 2 * small {
			begun := time.Now()
			g.Get(fmt.Sprintf("good%d.test", i%small), "/").WantStatus(t, 200)
			all = append(all, time.Since(begun))
		}
		slices.Sort(all)
		took, longest = min(took, all[len(all)/2]), max(longest, all[len(all)-1])
	}
	// They are not asked for while the others are.
	decoded := g.State().Cache.Decoded
	headgatetest.Eventually(t, "the worker has decoded others", func() bool { return g.State().Cache.Decoded > decoded+large/4 })
	lost := 0
	for i := range small {
		u, err := g.Client.Unit(t.Context(), unit.Host.Key(fmt.Sprintf("good%d.test", i)))
		if err != nil || u.Worker.Holds != u.Version {
			lost++
		}
	}
	statuses := stop()
	state := g.State()
	after := resident(t, state.PID)
	t.Logf("idle %v, under attack p50 %v, longest %v; %d of %d hosts lost; the attacker's answers: %v; %d MiB before, %d after; cache %+v",
		idle, took, longest, lost, small, statuses, before, after, state.Cache)
	if took > 2*idle+20*time.Millisecond {
		t.Errorf("a request of another namespace takes %v, at rest %v", took, idle)
	}
	if lost > 0 {
		t.Errorf("the worker holds %d of %d hosts of another namespace no more", lost, small)
	}
	// What a worker may take in all.
	if after > 80*3/2 {
		t.Errorf("the worker has %d MiB, before it had %d", after, before)
	}
	if statuses[503] == 0 || statuses[200] == 0 {
		t.Errorf("the attacker's answers: %v", statuses)
	}
	if refusals := state.Refusals; refusals["decoding"]["evil"] == 0 || len(refusals) != 1 || len(refusals["decoding"]) != 1 {
		t.Errorf("refusals: %v", refusals)
	}
	if n, err := testutil.GatherAndCount(g.Metrics.Registry, "headgate_refusals_total"); n != 1 || err != nil {
		t.Errorf("the metric has %d namespaces: %v", n, err)
	}
	if n := strings.Count(g.Log.String(), "namespace evil: decoding its hosts and certificates takes more than 100 ms a second"); n < 1 || n > 2 {
		t.Errorf("the log has %d lines that say whose hosts take long", n)
	}
}

// owned is a host of namespace evil with many routes, which answer 404, or 503 if they are
// denied, and its name.
func owned(name string, routes int, denied bool) []unit.Change {
	h := model.Host{Name: name, Namespace: "evil"}
	for i := range routes {
		h.Routes = append(h.Routes, model.Route{Kind: model.Prefix, Path: fmt.Sprintf("/path/%d", i), Denied: denied})
	}
	host, n := unit.FromHost(h), unit.FromName(model.Name{Name: name, Host: name, Namespace: "evil"})
	return []unit.Change{changeOf(host), changeOf(n)}
}

func changeOf(u unit.Unit) unit.Change {
	return unit.Change{Kind: u.Kind, Name: u.Name, Version: u.Version, Owner: u.Owner, Payload: u.Payload}
}

// While a namespace's time for decoding is up, a new version of its host is not served,
// nor is the old one, which may guard less, nor is another certificate shown. Small units
// are served, endpoints that have changed are used, and other namespaces have their own time.
func TestNoOldVersionWhileTimeIsUp(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	globals := unit.FromGlobals(model.Globals{})
	pair, other := headgatetest.NewKeyPair(t, "evil", "tls.test"), headgatetest.NewKeyPair(t, "other", "other.test")
	certificate := func(hash, owner string, pair headgatetest.KeyPair) unit.Change {
		return changeOf(unit.FromCertificate("", owner, model.Certificate{Hash: hash, Chain: []byte(strings.Repeat(pair.Certificate, 2)), Key: model.PrivateKey(pair.Key)}))
	}
	backend := func(first int) unit.Change {
		b := model.Backend{Key: "evil/b/80"}
		for i := range 100 {
			b.Endpoints = append(b.Endpoints, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(first+i)))
		}
		return changeOf(unit.FromBackend(b))
	}
	push(t, g, backend(1), changeOf(unit.FromHost(model.Host{Name: "b.test", Routes: []model.Route{{Kind: model.Prefix, Path: "/", Backend: "evil/b/80"}}})),
		changeOf(unit.FromName(model.Name{Name: "b.test", Host: "b.test"})))
	push(t, g, append(owned("small.test", 1, false), append(owned("guarded.test", 2000, false), changeOf(globals),
		certificate("e", "evil", pair), certificate("o", "good", other), changeOf(unit.FromCertificate(model.DefaultCertificate, "", model.Certificate{Hash: "d", Chain: []byte(other.Certificate), Key: model.PrivateKey(other.Key)})),
		changeOf(unit.FromName(model.Name{Name: "tls.test", Host: "small.test", Namespace: "evil", HasTLS: true, Certificate: "e"})),
		changeOf(unit.FromName(model.Name{Name: "other.test", Host: "small.test", Namespace: "good", HasTLS: true, Certificate: "o"})))...)...)
	if err := g.Client.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Get("guarded.test", "/path/1").WantStatus(t, 404)
	g.Get("b.test", "/")
	refused := func() int64 { return g.State().Refusals["decoding"]["evil"] }
	// The worker gets time back while it waits for this process. So the hosts are made once,
	// and differ only by their versions later, and the worker is asked for all at once. The
	// cache has room for them beside the one that is guarded.
	const dear = 6
	var hosts []unit.Change
	for n := range dear {
		hosts = append(hosts, owned(fmt.Sprintf("dear%d.test", n), 4900, false)...)
	}
	state := g.State()
	versions := 0
	spend := func() {
		for range 10000 {
			for i := range hosts {
				versions++
				hosts[i].Version = fmt.Sprintf("%020x", versions)
			}
			if _, err := g.Client.Push(t.Context(), state.Dictionary, state.Generation, hosts); err != nil {
				t.Fatal(err)
			}
			var asking sync.WaitGroup
			replies := make([]headgatetest.Response, dear)
			for n := range replies {
				asking.Go(func() { replies[n] = g.Get(fmt.Sprintf("dear%d.test", n), "/path/1") })
			}
			asking.Wait()
			for _, r := range replies {
				if r.Status == 503 && r.Header.Get("Retry-After") != "1" {
					t.Errorf("no Retry-After: %v", r.Header)
				}
			}
			if slices.ContainsFunc(replies, func(r headgatetest.Response) bool { return r.Status == 503 }) {
				return
			}
		}
		t.Fatal("a namespace may take all of the worker's time")
	}
	push(t, g, owned("guarded.test", 2000, true)...)
	spend()
	if refused() == 0 {
		t.Fatal("a refusal that is not counted")
	}
	if times := g.State().Times["decoding"]; times["evil"] < 0.1 || len(times) > 2 {
		t.Errorf("the workers took %v", times)
	}
	// It is not decoded, so the old version would answer 404. With its time, it answers
	// 503 as well, by the new one.
	spend()
	g.Get("guarded.test", "/path/1").WantStatus(t, 503)
	// The worker gets time back while this process is stalled, so a certificate that is
	// shown proves nothing: try another one.
	headgatetest.Eventually(t, "a handshake is refused", func() bool {
		versions++
		hash := fmt.Sprint("e", versions)
		push(t, g, certificate(hash, "evil", pair),
			changeOf(unit.FromName(model.Name{Name: "tls.test", Host: "small.test", Namespace: "evil", HasTLS: true, Certificate: hash})))
		spend()
		leaf, err := leafOf(g.HTTPS, "tls.test")
		if err == nil && leaf != pair.Certificate {
			t.Fatal("another certificate was shown")
		}
		return err != nil
	})
	g.Get("small.test", "/path/0").WantStatus(t, 404)
	moved := backend(2)
	push(t, g, moved)
	g.Get("b.test", "/")
	if u, err := g.Client.Unit(t.Context(), moved.Key()); err != nil || u.Worker.Holds != moved.Version {
		t.Errorf("endpoints that have changed are not used: %v, %+v", err, u.Worker)
	}
	if _, err := leafOf(g.HTTPS, "other.test"); err != nil {
		t.Errorf("a handshake for another namespace: %v", err)
	}
	headgatetest.Eventually(t, "there is time again", func() bool {
		_, err := leafOf(g.HTTPS, "tls.test")
		return err == nil && g.Get("dear0.test", "/path/1").Status == 404
	})
	headgatetest.Eventually(t, "the new version is decoded", func() bool {
		g.Get("guarded.test", "/path/1").WantStatus(t, 503)
		u, err := g.Client.Unit(t.Context(), unit.Host.Key("guarded.test"))
		return err == nil && u.Worker.Holds == u.Version
	})
}

// A new worker serves all ordinary hosts of a namespace at once, however many there are.
func TestNewWorkerServesOrdinaryHosts(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const hosts, handshakes = 4000, 400
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	entries := []unit.Change{changeOf(unit.FromGlobals(model.Globals{}))}
	pair := headgatetest.NewKeyPair(t, "any", "*.test")
	for i := range hosts {
		name := strconv.Itoa(i) + ".test"
		h := owned(name, 120, false)[0]
		entries = append(entries, h)
		n := model.Name{Name: name, Host: name, Namespace: "evil"}
		if i < handshakes {
			n.HasTLS, n.Certificate = true, strconv.Itoa(i)
			entries = append(entries, changeOf(unit.FromCertificate("", "evil", model.Certificate{
				Hash: n.Certificate, Chain: []byte(strings.Repeat(pair.Certificate, 3)), Key: model.PrivateKey(pair.Key),
			})))
		}
		entries = append(entries, changeOf(unit.FromName(n)))
	}
	push(t, g, entries...)
	if err := g.Client.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &line{port: g.HTTP}
	defer client.close()
	for i := range hosts {
		if err := client.send(fmt.Sprintf("GET /path/1 HTTP/1.1\r\nHost: %d.test\r\n\r\n", i)); err != nil {
			t.Fatal(err)
		}
		if r, err := client.answer(); err != nil || r.StatusCode != 404 {
			t.Fatalf("host %d: %+v %v", i, r, err)
		}
	}
	for i := range handshakes {
		if _, err := leafOf(g.HTTPS, strconv.Itoa(i)+".test"); err != nil {
			t.Fatalf("host %d: %v", i, err)
		}
	}
	if refusals := g.State().Refusals; refusals != nil {
		t.Errorf("refusals: %v", refusals)
	}
}
