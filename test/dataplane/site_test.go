package dataplane_test

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A site serves rows, each guard by itself, and each bypass without a guard.
type site struct {
	network
	rows         []row
	versions     []string
	combinations int
	// address is that of the auth services and of the mirror. down: the first don't answer.
	address  string
	down     atomic.Bool
	mirrored *record
	// secrets are those of guards.
	secrets string
	// verdicts are those of guards by themselves, opens what becomes of a request without a
	// guard.
	verdicts, opens map[string]outcome
	// reloading: connections may end at any time. lost is how often one did.
	reloading bool
	lost      int
}

// startSite has all rows served.
func startSite(t *testing.T, o headgatetest.Options) *site {
	t.Helper()
	s := &site{mirrored: newRecord(), verdicts: map[string]outcome{}, opens: map[string]outcome{}}
	s.record, s.clients = newRecord(), map[origin]*http.Client{}
	s.address = headgatetest.StartBackend(t, http.HandlerFunc(s.serve))
	s.certificates = map[string]tls.Certificate{}
	s.secrets = guardSecrets(s.certify(t, "client"), s.certify(t, "other"))
	s.certify(t, "stranger")
	o.Manifests = s.config() + s.secrets + "---\nkind: Secret\napiVersion: v1\nmetadata: {name: empty}\n" +
		headgatetest.Service("app") + headgatetest.Endpoints("app", s.record.backend(t, "app")) +
		headgatetest.Service("next") + headgatetest.Endpoints("next", s.record.backend(t, "next")) +
		headgatetest.Service("page") + headgatetest.Endpoints("page", errorService(t)) +
		headgatetest.Service("silent") + headgatetest.Endpoints("silent")
	s.instance = headgatetest.Start(t, o)
	t.Cleanup(s.rest)
	s.versions = []string{"1.1", "1.1 with TLS", "2"}
	if s.instance.HTTP3() {
		s.versions = append(s.versions, "3")
	}
	s.rows = rowsOf(s.versions)
	s.instance.Apply(s.hosts(t))
	return s
}

// certify makes a client's certificate.
func (s *site) certify(t *testing.T, name string) headgatetest.KeyPair {
	t.Helper()
	pair := headgatetest.NewKeyPair(t, name)
	certificate, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	s.certificates[name] = certificate
	return pair
}

// hosts are all hosts.
func (s *site) hosts(t *testing.T) string {
	var manifests string
	var secured []string
	add := func(host, bypass string, annotations []string) {
		b := allBypasses()[bypass]
		if b.secured {
			secured = append(secured, host)
		}
		manifests += b.ingresses(host, s.address, annotations)
	}
	for _, g := range slices.Concat(singles, brokenSingles()) {
		add("alone."+g.name+".test", "none", guardAnnotations(false, g))
	}
	opens := map[string]bool{}
	for _, r := range s.rows {
		add(r.host, r.bypass, r.annotations())
		if open := (row{bypass: r.bypass, also: r.also}); !opens[open.openHost()] {
			opens[open.openHost()] = true
			add(open.openHost(), open.bypass, open.annotations())
		}
	}
	return manifests + headgatetest.TLSSecret("certificate", headgatetest.NewKeyPair(t, "site", secured...))
}

// serve is what the services answer.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/mirror"):
		s.mirrored.mu.Lock()
		s.mirrored.seen[r.Header.Get("X-Mark")] += r.RequestURI
		s.mirrored.mu.Unlock()
	case s.down.Load():
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/check" && r.Header.Get("X-Token") != "ok", r.URL.Path == "/global" && r.Header.Get("X-Global") != "ok":
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// config is the ConfigMap, with other values of some keys.
func (s *site) config(other ...string) string {
	keys := slices.Concat(always, byKeys, []string{"use-forwarded-headers: true", "proxy-real-ip-cidr: " + balancer})
	for _, key := range other {
		name, _, _ := strings.Cut(key, ": ")
		keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, name+": ") })
	}
	text := headgatetest.Config(append(keys, other...)...)
	return strings.ReplaceAll(text, "ADDRESS", s.address)
}

// must asks until there is an answer: while NGINX is reloaded, connections end.
func (s *site) must(t *testing.T, host string, a asking, c caller) outcome {
	t.Helper()
	for {
		got, err := s.ask(t, host, a, c)
		if err == nil {
			return got
		}
		if !s.reloading {
			t.Fatalf("%s: %v: %+v: %v", host, a, c, err)
		}
		s.lost++
	}
}
