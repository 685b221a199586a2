package overview

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/unit"
)

func endpoints(list ...string) (addresses []netip.AddrPort) {
	for _, text := range list {
		addresses = append(addresses, netip.MustParseAddrPort(text))
	}
	return addresses
}

var all = Query{Limit: 50}

// shop has two hosts, of which one has a backend that does not exist.
func shop() *Table {
	t := New()
	origin := model.Origin{Namespace: "shop", Ingress: "web"}
	t.Set(unit.Of(model.Host{Name: "shop.test", Namespace: "shop", Routes: []model.Route{
		{Kind: model.Exact, Path: "/cart", Backend: "shop/cart/80", Origin: origin},
		{Kind: model.Prefix, Path: "/", Backend: "shop/web/80", Origin: origin, Denied: true},
	}}))
	t.Set(unit.Of(model.Host{Name: "plain.test", Routes: []model.Route{{Kind: model.Prefix, Path: "/", Backend: "shop/cart/80"}}}))
	t.Set(unit.Of(model.Name{Name: "www.shop.test", Host: "shop.test"}))
	t.Set(unit.Of(model.Name{Name: "shop.test", Host: "shop.test"}))
	t.Set(unit.Of(model.Backend{Key: "shop/cart/80", Endpoints: endpoints("10.0.0.1:80", "10.0.0.2:80")}))
	return t
}

func names(p Page[Host]) (list []string) {
	for _, h := range p.Items {
		list = append(list, h.Name)
	}
	return list
}

func TestHosts(t *testing.T) {
	table := shop()
	for _, c := range []struct {
		q     Query
		want  []string
		total int
	}{
		{all, []string{"plain.test", "shop.test"}, 2},
		{Query{Limit: 1}, []string{"plain.test"}, 2},
		{Query{Limit: 1, Offset: 1}, []string{"shop.test"}, 2},
		{Query{Limit: 1, Offset: 5}, nil, 2},
		{Query{Limit: 5, Text: "WWW"}, []string{"shop.test"}, 1},
		{Query{Limit: 5, Text: "ingress/shop/web"}, []string{"shop.test"}, 1},
		{Query{Limit: 5, Text: "cart"}, []string{"plain.test", "shop.test"}, 2},
		{Query{Limit: 5, Problems: true}, []string{"shop.test"}, 1},
		{Query{Limit: 5, Text: "nothing"}, nil, 0},
	} {
		p := table.Hosts(c.q)
		if diff := cmp.Diff(c.want, names(p)); diff != "" || p.Total != c.total || p.Items == nil {
			t.Errorf("%+v: %d: %s", c.q, p.Total, diff)
		}
	}
	h := table.Host("shop.test")
	if h.Denied != 1 || h.Health != Down || h.Routes != 2 || h.Aliases.Total != 1 || h.Ingresses.Names[0] != "ingress/shop/web" {
		t.Errorf("%+v", h)
	}
	if r := table.Routes("shop.test", Query{Limit: 1}); r.Total != 2 || r.Items[0].Path != "/cart" || r.Items[0].Health != Well {
		t.Errorf("%+v", r)
	}
	table.Set(unit.Built{Key: unit.Host.Key("shop.test")})
	table.Set(unit.Built{Key: unit.Name.Key("www.shop.test")})
	if p := table.Hosts(all); p.Total != 1 || table.Host("shop.test") != nil || len(table.aliases) != 0 {
		t.Errorf("after a deletion: %+v", p)
	}
}

// TestHealth: what checks and workers say of endpoints.
func TestHealth(t *testing.T) {
	table := shop()
	eject := func(addresses ...string) (list []Ejection) {
		for _, address := range addresses {
			list = append(list, Ejection{Backend: "shop/cart/80", Endpoint: address, Why: "no connection", Avoided: true}, Ejection{Backend: "other/cart/80", Endpoint: address})
		}
		return list
	}
	for _, c := range []struct {
		backend   model.Backend
		ejections []Ejection
		health    Health
		states    string
	}{
		{model.Backend{Endpoints: endpoints("10.0.0.1:80", "10.0.0.2:80")}, nil, Well, "ok ok"},
		{model.Backend{Endpoints: endpoints("10.0.0.1:80", "10.0.0.2:80")}, eject("10.0.0.2:80", "10.0.0.9:80"), Degraded, "ejected ok"},
		{model.Backend{Endpoints: endpoints("10.0.0.1:80", "10.0.0.2:80")}, eject("10.0.0.1:80", "10.0.0.2:80"), Down, "ejected ejected"},
		{model.Backend{}, nil, Down, ""},
		{model.Backend{Endpoints: endpoints("10.0.0.1:80"), Terminating: endpoints("10.0.0.3:80")}, nil, Well, "ok terminating"},
		{
			model.Backend{Endpoints: endpoints("10.0.0.1:80"), Health: model.Health{
				Checked: endpoints("10.0.0.1:80", "10.0.0.2:80"), Unhealthy: []model.UnhealthyEndpoint{{Address: endpoints("10.0.0.2:80")[0], Why: "status 500"}},
			}}, nil, Degraded, "unhealthy ok",
		},
		{
			model.Backend{Endpoints: endpoints("10.0.0.1:80"), Health: model.Health{
				Checked: endpoints("10.0.0.1:80"), Unhealthy: []model.UnhealthyEndpoint{{Address: endpoints("10.0.0.1:80")[0], Why: "status 500"}},
			}}, nil, Down, "unhealthy",
		},
	} {
		c.backend.Key = "shop/cart/80"
		table.Set(unit.Of(c.backend))
		b, page := table.Backend("shop/cart/80", all, c.ejections)
		var states []string
		for _, e := range page.Items {
			states = append(states, e.State)
		}
		if b.Health != c.health || strings.Join(states, " ") != c.states || b.Hosts.Total != 2 {
			t.Errorf("%+v: %+v %v", c.backend, b, states)
		}
		if problems := table.Backends(Query{Limit: 5, Problems: true}, c.ejections); (problems.Total == 1) != (c.health > Well) {
			t.Errorf("%+v: %+v", c.backend, problems)
		}
	}
	if b, _ := table.Backend("shop/nothing/80", all, nil); b != nil {
		t.Error("there is no such backend")
	}
}

// TestCertificates: their names and dates are kept, and nothing else of them.
func TestCertificates(t *testing.T) {
	table, authority := New(), pkitest.New(t)
	certificate := func(secret, hash string, hosts ...string) model.Certificate {
		pair := authority.Issue(hosts...)
		return model.Certificate{Hash: hash, Secret: secret, Chain: []byte(pair.Chain), Key: model.PrivateKey(pair.Key)}
	}
	wild, made := certificate("a/wild", "1", "*.a.test"), certificate("", "2", "fallback")
	name := func(key, owner, hash string) model.Name {
		return model.Name{Name: key, Host: key, Owner: owner, HasTLS: true, Certificate: hash}
	}
	table.Set(unit.Built{Key: unit.DefaultCertificateKey, Model: made})
	for _, built := range []unit.Built{unit.Of(name("*.a.test", "", "1"), wild), unit.Of(name("one.a.test", "", "")), unit.Of(name("b.test", "", ""))} {
		table.Set(built)
		table.Set(unit.Of(model.Host{Name: built.Name}))
	}
	for host, want := range map[string]string{"*.a.test": "1", "one.a.test": "1", "b.test": "2"} {
		if c := table.Host(host).Certificate; c == nil || c.Hash != want || c.Default != (want == "2") {
			t.Errorf("%s shows %+v", host, c)
		}
	}
	p := table.Certificates(all, time.Now())
	if p.Total != 2 || table.Certificates(Query{Limit: 5, Problems: true}, time.Now().Add(1e6*time.Hour)).Total != 2 || table.Certificates(Query{Limit: 5, Problems: true}, time.Now()).Total != 0 {
		t.Errorf("%+v", p)
	}
	if found := table.Certificates(Query{Limit: 5, Text: "one.a"}, time.Now()); found.Total != 0 {
		t.Errorf("a name without a certificate of its own: %+v", found)
	}
	text, err := json.Marshal(p)
	if err != nil || strings.Contains(string(text), "PRIVATE") || strings.Contains(string(text), "BEGIN") || !strings.Contains(string(text), "*.a.test") {
		t.Errorf("%v %s", err, text)
	}
	table.Set(unit.Built{Key: unit.Name.Key("*.a.test")})
	if table.Certificates(all, time.Now()).Total != 1 || !table.Host("one.a.test").Certificate.Default {
		t.Error("the certificate of a name that is gone is left")
	}
}

// TestRates are computed of two looks at the counters.
func TestRates(t *testing.T) {
	counts := map[string]Counts{"a.test": {2: 10}, "b.test": {5: 100}}
	r, at := NewRates(func() map[string]Counts {
		copied := map[string]Counts{}
		for host, c := range counts {
			copied[host] = c
		}
		return copied
	}), time.Unix(1000, 0)
	if list, over := r.Now(at); over != 0 || len(list) != 2 || list[0].All != 0 || list[0].Host != "b.test" {
		t.Errorf("%v %v", list, over)
	}
	counts["a.test"] = Counts{2: 30, 4: 2}
	counts["b.test"] = Counts{5: 1} // its series are gone and came back
	list, over := r.Now(at.Add(2 * time.Second))
	if over != 2 || list[0] != (Rate{Host: "a.test", All: 11, Classes: [Classes]float64{2: 10, 4: 1}, Requests: 32}) || list[1].All != 0 {
		t.Errorf("%v %v", list, over)
	}
	for n := range 100 {
		r.Now(at.Add(time.Duration(n) * time.Second))
	}
	if len(r.looks) > 15 {
		t.Errorf("%d looks are kept", len(r.looks))
	}
	if _, over := r.Now(at.Add(time.Hour)); over != 0 {
		t.Errorf("a look of an hour ago counts: %v", over)
	}
}

// TestBounds: lists in items and texts are short.
func TestBounds(t *testing.T) {
	table := New()
	h := model.Host{Name: "a.test"}
	for n := range 500 {
		h.Routes = append(h.Routes, model.Route{Kind: model.Prefix, Path: "/" + strings.Repeat("ä", 5000), Origin: model.Origin{Namespace: "a", Ingress: fmt.Sprint(n)}})
		table.Set(unit.Of(model.Name{Name: fmt.Sprint(n, ".test"), Host: "a.test"}))
	}
	table.Set(unit.Of(h))
	one := table.Host("a.test")
	if len(one.Aliases.Names) != fewNames || one.Aliases.Total != 500 || len(one.Ingresses.Names) != fewNames {
		t.Errorf("%+v", one)
	}
	for _, r := range table.Routes("a.test", Query{Limit: 200}).Items {
		if len(r.Path) > maxText+len("…") || !strings.HasSuffix(r.Path, "ä…") {
			t.Fatalf("a path of %d bytes", len(r.Path))
		}
	}
	var none *Table
	none.Set(unit.Of(h))
}
