package build_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// TestTraces builds the objects of all cases with traces: nothing comes out
// otherwise, and each rule and each endpoint is traced.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newStore(decode(t, archive.Files[0].Data))
			for _, key := range s.All() {
				checkTrace(t, s, key)
			}
		})
	}
}

func checkTrace(t *testing.T, s *store.Store, key unit.Key) {
	t.Helper()
	b := newBuilder()
	var plain, traced []any
	switch key.Kind {
	case unit.Host:
		h, found, fs := b.Host(key.Name, s)
		again, trace, foundAgain, more := b.TraceHost(key.Name, s)
		plain, traced = []any{h, found, fs}, []any{again, foundAgain, more}
		checkRules(t, s, h, trace)
	case unit.Name:
		n, _, found, fs := b.Name(key.Name, s)
		again, trace, foundAgain, more := b.TraceName(key.Name, s)
		plain, traced = []any{n, found, fs}, []any{again, foundAgain, more}
		// A host that no entry of a TLS section is for is secured too.
		if trace.Certificate != nil && !n.HasTLS && trace.Alias == nil {
			t.Errorf("%s: secured %v, but what decides is %+v", key.Name, n.HasTLS, trace.Certificate)
		}
	case unit.Backend:
		be, found, fs := b.Backend(key.Name, s)
		again, trace, foundAgain, more := b.TraceBackend(key.Name, s)
		plain, traced = []any{be, found, fs}, []any{again, foundAgain, more}
		checkEndpoints(t, be, trace)
	}
	if !reflect.DeepEqual(plain, traced) {
		t.Errorf("%v differs with a trace: %+v, without one %+v", key, traced, plain)
	}
}

// checkRules counts the paths of the host's Ingresses: each is served or lost.
func checkRules(t *testing.T, s *store.Store, h model.Host, trace routing.HostTrace) {
	t.Helper()
	if len(h.Routes) != len(trace.Routes) {
		t.Fatalf("host %s: %d routes, %d are traced", h.Name, len(h.Routes), len(trace.Routes))
	}
	reported := map[string]int{}
	for i, rule := range trace.Routes {
		if rule.Ingress != nil {
			reported[rule.Ingress.Namespace+"/"+rule.Ingress.Name+" "+rule.Field]++
		}
		if r := h.Routes[i]; r.Kind != model.Pattern && (r.Kind != rule.Kind || r.Path != rule.Path || r.Slash != rule.Slash) {
			t.Errorf("host %s: route %+v is traced as %+v", h.Name, r, rule)
		}
	}
	for _, lost := range trace.Lost {
		reported[lost.Ingress.Namespace+"/"+lost.Ingress.Name+" "+lost.Field]++
		if lost.Why == "" {
			t.Errorf("host %s: nothing says why %s of %s is lost", h.Name, lost.Field, lost.Ingress.Name)
		}
	}
	paths := 0
	for _, ing := range s.Ingresses(h.Name) {
		for _, rule := range ing.Spec.Rules {
			if rule.HTTP != nil && (rule.Host == h.Name || rule.Host == "" && h.Name == model.DefaultHost) {
				paths += len(rule.HTTP.Paths)
			}
		}
	}
	counted := 0
	for name, n := range reported {
		if n != 1 {
			t.Errorf("host %s: %s is traced %d times", h.Name, name, n)
		}
		if name[len(name)-1] == ']' {
			counted++
		}
	}
	if counted < paths {
		t.Errorf("host %s: %d of %d paths are traced", h.Name, counted, paths)
	}
}

// checkEndpoints: those that are asked are traced, once or more, and those that
// are not say why.
func checkEndpoints(t *testing.T, be model.Backend, trace build.BackendTrace) {
	t.Helper()
	asked := map[string]bool{}
	for _, e := range trace.Endpoints {
		asked[e.Address] = asked[e.Address] || e.Asked
		// Where all are unhealthy, they are asked all the same, and say so.
		unhealthy := len(be.Health.Unhealthy) > 0 && len(be.Health.Unhealthy) == len(be.Endpoints)
		if e.Asked == (e.Why != "") && !(e.Asked && unhealthy) {
			t.Errorf("backend %s: %+v", be.Key, e)
		}
	}
	if trace.ExternalName != "" || be.ServiceAddress {
		return
	}
	for _, e := range be.Endpoints {
		if !asked[e.String()] {
			t.Errorf("backend %s: %s is asked, and not traced", be.Key, e)
		}
	}
	for address, is := range asked {
		found := false
		for _, e := range be.Endpoints {
			found = found || e.String() == address
		}
		if is && !found {
			t.Errorf("backend %s: %s is traced as asked", be.Key, address)
		}
	}
}
