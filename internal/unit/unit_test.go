package unit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the golden file")

type policy struct {
	On   bool   `json:"on,omitempty"`
	Text string `json:"text"`
}

func usualProfile() model.Profile {
	return model.Profile{}.With(model.ProfileValue{Name: "size", Number: 4096})
}

func largeHost() model.Host {
	other := usualProfile()
	other = other.With(model.ProfileValue{Name: "size"})
	web, api := model.Origin{Namespace: "default", Ingress: "web"}, model.Origin{Namespace: "default", Ingress: "api"}
	one := model.Policy{Feature: "one", Value: policy{On: true, Text: `<&>"\` + "\n\x00é\u2028"}}
	two := model.Policy{Feature: "two", Value: policy{Text: "x"}}
	return model.Host{Name: "shop.example.com", Routes: []model.Route{
		{Kind: model.Exact, Path: "/login", Backend: "default/web/80", Profile: usualProfile(), Origin: web, Policies: []model.Policy{one, two}},
		{Kind: model.Prefix, Path: "/", Profile: usualProfile()},
		{Kind: model.Prefix, Path: "/api", Slash: true, Backend: "default/api/http", Profile: other, Origin: api, Policies: []model.Policy{one}},
		{Kind: model.Prefix, Path: "/ä \"b\\", Denied: true, Backend: "default/web/80", Profile: usualProfile(), Origin: web},
	}}
}

// agreed is a feature's policy in TLS handshakes.
func agreed(text string) []model.Policy {
	return []model.Policy{{Feature: "handshake", Value: policy{Text: text}}}
}

func units() []unit.Unit {
	return []unit.Unit{
		unit.FromHost(largeHost()),
		unit.FromHost(model.Host{Name: "_"}),
		unit.FromHost(model.Host{Name: "a.test", TLS: agreed("HIGH:!aNULL")}),
		unit.FromHost(model.Host{Name: "b.test", TLS: append(agreed("x"), model.Policy{Feature: "clients", Value: 1})}),
		unit.FromName(model.Name{Name: "shop.example.com", Host: "shop.example.com", HasTLS: true, Certificate: "abc"}),
		unit.FromName(model.Name{Name: "owned.test", Host: "owned.test", Namespace: "team-a"}),
		unit.FromName(model.Name{Name: "_", Host: "_"}),
		unit.FromBackend(model.Backend{Key: "default/web/80", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[fd00::1]:8080")}}),
		unit.FromBackend(model.Backend{Key: "default/none/80"}),
		unit.FromBackend(model.Backend{Key: "No_Namespace/none/80"}),
		unit.FromCertificate("", "", model.Certificate{Hash: "abc", Chain: []byte("chain\n"), Key: model.PrivateKey("key\n")}),
		unit.FromCertificate("default", "", model.Certificate{Hash: "abc", Chain: []byte("chain\n"), Key: model.PrivateKey("key\n")}),
		unit.FromGlobals(model.Globals{Policies: []model.Policy{{Feature: "one", Value: policy{Text: "x"}}}}),
		unit.FromGlobals(model.Globals{}),
	}
}

func TestGolden(t *testing.T) {
	var got strings.Builder
	for _, u := range units() {
		fmt.Fprintf(&got, "%s\n%s\n", strings.TrimSpace(fmt.Sprint(u.Kind, " ", u.Name, " ", u.Version, " ", u.Owner)), u.Payload)
	}
	const file = "testdata/units.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got; go test -update writes it)\n%s", diff)
	}
}

func TestUnitsAreWhatTheirBytesSay(t *testing.T) {
	versions := map[string]string{}
	for i, u := range units() {
		if again := units()[i]; !bytes.Equal(u.Payload, again.Payload) || u.Version != again.Version {
			t.Errorf("%s %s: other bytes for the same input", u.Kind, u.Name)
		}
		sum := sha256.Sum256([]byte(string(u.Payload) + u.Owner))
		if u.Version != hex.EncodeToString(sum[:10]) || len(u.Version) > 64 {
			t.Errorf("%s %s: version %q", u.Kind, u.Name, u.Version)
		}
		if !json.Valid(u.Payload) || bytes.ContainsAny(u.Payload, "\r\n\x00") {
			t.Errorf("%s %s: no JSON on one line: %q", u.Kind, u.Name, u.Payload)
		}
		if other, ok := versions[u.Version]; ok && other != string(u.Payload) {
			t.Errorf("two payloads with the version %s", u.Version)
		}
		versions[u.Version] = string(u.Payload)
	}
}

// A unit that goes to another namespace is another version: it must be pushed.
func TestVersionHasTheOwner(t *testing.T) {
	one := unit.FromHost(model.Host{Name: "a.test", Namespace: "one"})
	two := unit.FromHost(model.Host{Name: "a.test", Namespace: "two"})
	if one.Owner != "one" || two.Owner != "two" || one.Version == two.Version || !bytes.Equal(one.Payload, two.Payload) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// TestHostReadsBack follows the numbers of a packed host back to what they
// stand for.
func TestHostReadsBack(t *testing.T) {
	h := largeHost()
	var packed struct {
		Backends, Locations []string
		Policies            [][2]json.RawMessage
		Origins             [][2]string
		Routes              []struct {
			Exact, Prefix             string
			Slash, Denied             bool
			Backend, Location, Origin int
			Policies                  []int
		}
	}
	if err := json.Unmarshal(unit.FromHost(h).Payload, &packed); err != nil {
		t.Fatal(err)
	}
	if len(packed.Backends) != 2 || len(packed.Locations) != 2 || len(packed.Policies) != 2 || len(packed.Origins) != 2 || len(packed.Routes) != len(h.Routes) {
		t.Fatalf("equal values do not stand once: %+v", packed)
	}
	for i, r := range packed.Routes {
		want := h.Routes[i]
		got := model.Route{Kind: model.Prefix, Path: r.Prefix, Slash: r.Slash, Denied: r.Denied, Profile: want.Profile}
		if r.Exact != "" {
			got.Kind, got.Path = model.Exact, r.Exact
		}
		if r.Backend > 0 {
			got.Backend = packed.Backends[r.Backend-1]
		}
		if r.Origin > 0 {
			got.Origin = model.Origin{Namespace: packed.Origins[r.Origin-1][0], Ingress: packed.Origins[r.Origin-1][1]}
		}
		if name := packed.Locations[r.Location-1]; name != want.Profile.Location(want.Variant) {
			t.Errorf("route %d has the location %s", i, name)
		}
		for _, n := range r.Policies {
			var p policy
			var name string
			if err := json.Unmarshal(packed.Policies[n-1][0], &name); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(packed.Policies[n-1][1], &p); err != nil {
				t.Fatal(err)
			}
			got.Policies = append(got.Policies, model.Policy{Feature: name, Value: p})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("route %d (-want +got):\n%s", i, diff)
		}
	}
}

// Each field of a host must be in its bytes, or its change would not be
// pushed.
func TestEveryFieldMakesOtherBytes(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*model.Host){
		"nothing":      func(*model.Host) {},
		"kind":         func(h *model.Host) { h.Routes[1].Kind = model.Exact },
		"path":         func(h *model.Host) { h.Routes[1].Path = "/x" },
		"slash":        func(h *model.Host) { h.Routes[2].Slash = false },
		"backend":      func(h *model.Host) { h.Routes[2].Backend = "" },
		"denied":       func(h *model.Host) { h.Routes[3].Denied = false },
		"profile":      func(h *model.Host) { h.Routes[2].Profile.Access = true },
		"origin":       func(h *model.Host) { h.Routes[2].Origin.Ingress = "web" },
		"policy":       func(h *model.Host) { h.Routes[2].Policies = nil },
		"policy order": func(h *model.Host) { p := h.Routes[0].Policies; p[0], p[1] = p[1], p[0] },
		"route":        func(h *model.Host) { h.Routes = h.Routes[:3] },
		"TLS":          func(h *model.Host) { h.TLS = agreed("x") },
		"other TLS":    func(h *model.Host) { h.TLS = agreed("y") },
		"server":       func(h *model.Host) { h.Server = agreed("x") },
	} {
		h := largeHost()
		change(&h)
		version := unit.FromHost(h).Version
		if other, ok := seen[version]; ok {
			t.Errorf("%s and %s give the same bytes", name, other)
		}
		seen[version] = name
	}
}

// What was agreed on with one host, or under another policy, must not come in
// by a session.
func TestSessionsAreApart(t *testing.T) {
	high, low := agreed("high"), agreed("low")
	seen := map[string]bool{}
	for _, h := range []model.Host{
		{Name: "a.test", TLS: high}, {Name: "b.test", TLS: high}, {Name: "a.test", TLS: low},
		{Name: "a.test", TLS: slices.Concat(high, low)}, {Name: "a.test", TLS: high, Routes: largeHost().Routes},
	} {
		var packed struct{ TLS struct{ Sessions string } }
		if err := json.Unmarshal(unit.FromHost(h).Payload, &packed); err != nil {
			t.Fatal(err)
		}
		if again := seen[packed.TLS.Sessions]; len(packed.TLS.Sessions) != 32 || again != (len(h.Routes) > 0) {
			t.Errorf("%s, %+v: sessions %q, there before: %v", h.Name, h.TLS, packed.TLS.Sessions, again)
		}
		seen[packed.TLS.Sessions] = true
	}
}

// TestGuards: a policy that the profile determines guards nothing, as the profile does not.
func TestGuards(t *testing.T) {
	host := func(text string, ofProfile bool) unit.Unit {
		h := largeHost()
		h.Routes[0].Policies = append(slices.Clone(h.Routes[0].Policies), model.Policy{Feature: "three", Value: policy{Text: text}, OfProfile: ofProfile})
		return unit.FromHost(h)
	}
	for _, ofProfile := range []bool{false, true} {
		if same := unit.SameGuards(host("a", ofProfile), host("b", ofProfile)); same != ofProfile {
			t.Errorf("of the profile %v: the same guards %v", ofProfile, same)
		}
	}
	if !unit.SameGuards(unit.FromHost(largeHost()), host("a", true)) || unit.SameGuards(unit.FromHost(largeHost()), host("a", false)) {
		t.Error("one with and one without such a policy")
	}
}
