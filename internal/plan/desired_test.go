package plan_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/plan/nginxconf"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/unit"
)

// A bench is a Desired with the NGINX that it is applied to.
type bench struct {
	*plan.Desired
	t      *testing.T
	env    nginxconf.Environment
	static plan.Static
}

// newBench has started NGINX for nothing but the globals.
func newBench(t *testing.T) *bench {
	t.Helper()
	return startBench(t, false)
}

// startBench may have NGINX keep the profiles of the globals' list.
func startBench(t *testing.T, keepsCommon bool) *bench {
	t.Helper()
	b := &bench{Desired: plan.NewDesired(feature.Directives(all.Features())), t: t, env: environment(t), static: plan.Static{Dictionaries: dictionaries}}
	b.KeepsCommon = keepsCommon
	b.Set(unit.Of(usualGlobals()))
	b.reload("start")
	return b
}

// reload goes over to the next configuration, which must have the reason;
// without one there must be none to go over to.
func (b *bench) reload(reason string) {
	b.t.Helper()
	next, got, err := b.Next(b.env, b.static, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if got != reason {
		b.t.Errorf("reload because %q, want %q", got, reason)
	}
	if got == "" && next.Generation != b.static.Generation {
		b.t.Errorf("generation %d without a reason", next.Generation)
	}
	b.static = next
}

// push applies all of a delta, which must be as wanted: "put KIND NAME" and
// "del KIND NAME", with " needs N" where a host needs more than generation 1.
func (b *bench) push(held int, want ...string) {
	b.t.Helper()
	changes, gotHeld := b.Delta(b.static)
	var got []string
	for _, c := range changes {
		line := "put " + string(c.Kind) + " " + c.Name
		if c.Delete {
			line = "del " + string(c.Kind) + " " + c.Name
		}
		if c.Needs > 1 {
			line += " needs " + strconv.Itoa(c.Needs)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" || gotHeld != held {
		b.t.Errorf("%d held, want %d (-want +got):\n%s", gotHeld, held, diff)
	}
	b.Applied(changes)
}

func host(name, backend string, profiles ...model.Profile) model.Host {
	if len(profiles) == 0 {
		profiles = []model.Profile{usualProfile()}
	}
	h := model.Host{Name: name}
	for i, p := range profiles {
		h.Routes = append(h.Routes, model.Route{Kind: model.Prefix, Path: "/" + strconv.Itoa(i), Backend: backend, Profile: p})
	}
	return h
}

func (b *bench) add(name string, certificate string, profiles ...model.Profile) {
	b.Set(unit.Of(host(name, "d/"+name+"/80", profiles...)))
	n := model.Name{Name: name, Host: name, Certificate: certificate}
	var shown []model.Certificate
	if certificate != "" {
		shown = append(shown, model.Certificate{Hash: certificate, Chain: []byte("chain"), Key: model.PrivateKey(certificate)})
	}
	b.Set(unit.Of(n, shown...))
	b.Set(unit.Of(model.Backend{Key: "d/" + name + "/80", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")}}))
}

// addTLS adds a host with settings of TLS handshakes.
func (b *bench) addTLS(name string) {
	b.add(name, "")
	h := host(name, "d/"+name+"/80")
	h.TLS = []model.Policy{{Feature: "handshake", Value: 1}}
	b.Set(unit.Of(h))
}

func (b *bench) drop(name string) {
	b.Set(unit.Built{Key: unit.Host.Key(name)})
	b.Set(unit.Built{Key: unit.Name.Key(name)})
	b.Set(unit.Built{Key: unit.Backend.Key("d/" + name + "/80")})
}

func large() model.Profile {
	return unlike(value("client_max_body_size", 10*mib))
}

func TestWhatRefersComesAfterwards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("b.test", "c2")
	b.add("a.test", "c1")
	b.push(0, "put globals globals", "put certificate c1", "put certificate c2", "put backend d/a.test/80", "put backend d/b.test/80",
		"put host a.test", "put host b.test", "put name a.test", "put name b.test")
	b.push(0)
	b.add("a.test", "c1") // the same again
	b.push(0)
	b.drop("a.test")
	b.push(0, "del name a.test", "del host a.test", "del backend d/a.test/80", "del certificate c1")
	b.push(0)
	b.add("c.test", "")
	b.drop("c.test") // never applied
	b.push(0)
	b.reload("")
}

func TestCertificatesGoWithTheirLastName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "c")
	b.add("b.test", "c")
	b.push(0, "put globals globals", "put certificate c", "put backend d/a.test/80", "put backend d/b.test/80",
		"put host a.test", "put host b.test", "put name a.test", "put name b.test")
	b.add("a.test", "new")
	b.push(0, "put certificate new", "put name a.test")
	b.add("b.test", "")
	b.push(0, "put name b.test", "del certificate c")
	b.Set(unit.Of(model.Certificate{Hash: "x"}))
	b.push(0, "put certificate default")
	if n := b.Count(unit.Certificate); n != 2 {
		t.Errorf("%d certificates, want 2", n)
	}
}

func TestHostsWaitForTheirProfiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("old.test", "c1")
	b.push(0, "put globals globals", "put certificate c1", "put backend d/old.test/80", "put host old.test", "put name old.test")
	b.add("new.test", "", usualProfile(), large())
	b.add("plain.test", "")
	b.drop("old.test")
	// The new host is served with another profile, and keeps nothing from going.
	b.push(1, "put backend d/new.test/80", "put backend d/plain.test/80", "put host new.test", "put host plain.test", "put name new.test", "put name plain.test",
		"del name old.test", "del host old.test", "del backend d/old.test/80", "del certificate c1")
	b.push(1)
	b.reload("profile " + large().Name() + " is new")
	b.push(0, "put host new.test needs 2")
	b.reload("")
	// The name of a host that is there already is not held.
	other := large().With(value("buffering", 1))
	b.add("plain.test", "c9", other)
	b.push(1, "put certificate c9", "put host plain.test needs 2", "put name plain.test")
	b.reload("profile " + other.Name() + " is new")
	b.push(0, "put host plain.test needs 3")
}

// A new host is not served without its settings of handshakes, which no profile stands in
// for. What is there may still be referred to.
func TestHostsWaitForTheirHandshakes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("old.test", "c1")
	b.push(0, "put globals globals", "put certificate c1", "put backend d/old.test/80", "put host old.test", "put name old.test")
	b.addTLS("new.test")
	b.drop("old.test")
	b.push(2, "put backend d/new.test/80", "del name old.test", "del host old.test")
	b.reload("TLS handshakes differ by host")
	b.push(0, "put host new.test needs 2", "put name new.test", "del backend d/old.test/80", "del certificate c1")
}

func TestProfilesOutliveTheirHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "", large())
	b.reload("profile " + large().Name() + " is new")
	b.push(0, "put globals globals", "put backend d/a.test/80", "put host a.test needs 2", "put name a.test")
	conf := b.static.Files[nginxconf.File]
	b.drop("a.test")
	b.reload("")
	b.push(0, "del name a.test", "del host a.test", "del backend d/a.test/80")
	b.reload("")
	if !bytes.Equal(conf, b.static.Files[nginxconf.File]) {
		t.Error("nginx.conf changed without a reload")
	}
	// It serves again without a reload.
	b.add("b.test", "", large())
	b.push(0, "put backend d/b.test/80", "put host b.test needs 2", "put name b.test")
	b.drop("b.test")
	b.push(0, "del name b.test", "del host b.test", "del backend d/b.test/80")

	other := large().With(value("buffers", 8))
	b.add("c.test", "", other)
	b.reload("profile " + other.Name() + " is new")
	if slices.Contains(b.static.Profiles, large()) || !slices.Contains(b.static.Profiles, other) {
		t.Errorf("after the next reload: %+v", b.static.Profiles)
	}
}

// Name patterns go without the names whose hosts wait, and get them when these
// come.
func TestPatternsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	patterns := func(hosts ...string) {
		var p model.NamePatterns
		for _, host := range hosts {
			p.LeadingWildcards = append(p.LeadingWildcards, model.Name{Name: "*." + host, Host: host})
			p.Regexes = append(p.Regexes, model.Name{Name: "~^" + host, Host: host})
		}
		b.Set(unit.Of(p))
	}
	payload := func(want ...string) {
		t.Helper()
		var p model.NamePatterns
		for _, host := range want {
			p.LeadingWildcards = append(p.LeadingWildcards, model.Name{Name: "*." + host, Host: host})
			p.Regexes = append(p.Regexes, model.Name{Name: "~^" + host, Host: host})
		}
		changes, _ := b.Delta(b.static)
		i := slices.IndexFunc(changes, func(c unit.Change) bool { return c.Kind == unit.Patterns })
		if u := unit.FromNamePatterns(p); i < 0 || string(changes[i].Payload) != string(u.Payload) || changes[i].Version != u.Version {
			t.Errorf("%+v, want patterns of %v", changes, want)
		}
	}
	b.add("a.test", "")
	b.addTLS("new.test")
	patterns("a.test", "new.test")
	payload("a.test")
	b.push(3, "put globals globals", "put backend d/a.test/80", "put backend d/new.test/80", "put host a.test", "put name a.test",
		"put patterns patterns")
	b.push(3)
	// What another tenant changes meanwhile comes at once.
	b.add("b.test", "")
	patterns("a.test", "b.test", "new.test")
	payload("a.test", "b.test")
	b.push(3, "put backend d/b.test/80", "put host b.test", "put name b.test", "put patterns patterns")
	// It does not while NGINX is on its way to a configuration, and then does.
	before := b.static
	b.reload("TLS handshakes differ by host")
	for _, way := range [][2]plan.Static{{before, b.static}, {b.static, before}} {
		if changes, held := b.Delta(way[0], way[1]); len(changes) > 0 || held != 3 {
			t.Errorf("%d held, %+v", held, changes)
		}
	}
	payload("a.test", "b.test", "new.test")
	b.push(0, "put host new.test needs 2", "put name new.test", "put patterns patterns")
	b.push(0)
	// A host with another profile for a while has its patterns.
	b.add("third.test", "", large())
	patterns("third.test")
	payload("third.test")
	b.push(1, "put backend d/third.test/80", "put host third.test", "put name third.test", "put patterns patterns")
	b.Set(unit.Built{Key: unit.PatternsKey})
	b.push(1, "del patterns patterns")
	b.push(1)
}

// A profile stays as long as what is applied names it.
func TestProfilesOfAppliedHostsStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "", large())
	b.reload("profile " + large().Name() + " is new")
	changes, _ := b.Delta(b.static)
	b.Applied(changes)
	other := large().With(value("buffers", 8))
	b.add("a.test", "", other)
	b.reload("profile " + other.Name() + " is new")
	if !slices.Contains(b.static.Profiles, large()) {
		t.Error("the profile of the applied host is gone")
	}
	// That its name is gone does not say that the host is.
	b.drop("a.test")
	changes, _ = b.Delta(b.static)
	names := slices.DeleteFunc(changes, func(c unit.Change) bool { return c.Kind != unit.Name })
	b.Applied(names)
	third := large().With(value("buffers", 16))
	b.add("b.test", "", third)
	b.reload("profile " + third.Name() + " is new")
	if !slices.Contains(b.static.Profiles, large()) {
		t.Error("the profile of the applied host is gone after its name")
	}
}

// The phase of TLS policies comes with the first host that has one, which waits
// for it, and goes with a reload that is needed anyway.
func TestPhaseOfTLSPolicies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rendered := func() bool {
		return strings.Contains(string(b.static.Files[nginxconf.File]), "ssl_client_hello_by_lua")
	}
	b.add("a.test", "")
	b.push(0, "put globals globals", "put backend d/a.test/80", "put host a.test", "put name a.test")
	with := host("a.test", "d/a.test/80")
	with.TLS = []model.Policy{{Feature: "handshake", Value: 1}}
	b.Set(unit.Of(with))
	b.push(1)
	if rendered() {
		t.Error("the phase is there from the start")
	}
	b.reload("TLS handshakes differ by host")
	if !rendered() {
		t.Error("the phase is not there")
	}
	b.push(0, "put host a.test needs 2")
	other := host("b.test", "d/a.test/80")
	other.TLS = []model.Policy{{Feature: "handshake", Value: 2}}
	b.Set(unit.Of(other))
	b.reload("")
	b.push(0, "put host b.test needs 2")

	b.Set(unit.Of(host("a.test", "d/a.test/80")))
	b.Set(unit.Built{Key: unit.Host.Key("b.test")})
	b.reload("")
	g := usualGlobals()
	g.Process.Workers = 3
	b.Set(unit.Of(g))
	b.reload("settings of the process changed")
	if !rendered() {
		t.Error("the phase went while applied hosts have policies")
	}
	b.push(0, "put host a.test", "del host b.test")
	g.Process.Workers = 4
	b.Set(unit.Of(g))
	b.reload("settings of the process changed")
	if rendered() {
		t.Error("the phase stays without a policy")
	}
	b.Set(unit.Of(with))
	b.reload("TLS handshakes differ by host")
	b.push(0, "put host a.test needs 5")

	b.Set(unit.Of(host("a.test", "d/a.test/80")))
	b.push(0, "put host a.test")
	g.Process.TLS.RejectUnknown = true
	b.Set(unit.Of(g))
	b.reload("settings of the process changed")
	if !rendered() {
		t.Error("unknown names are not rejected without the phase")
	}
}

func TestOtherReasons(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := usualGlobals()
	g.Process.Workers = 3
	b.Set(unit.Of(g))
	b.reload("settings of the process changed")
	g.Default = large()
	b.Set(unit.Of(g))
	b.reload("profile " + large().Name() + " is new, the ConfigMap has another default profile")
	g.Policies = []model.Policy{{Feature: "x", Value: 1}}
	b.Set(unit.Of(g))
	b.reload("")
	b.push(0, "put globals globals")
	grown := b.static.Dictionaries.Grown(nginxconf.Usage{Units: mib}, false)
	next, reason, err := b.Next(b.env, b.static, grown)
	if err != nil || reason != "the shared memory grows" || next.Dictionaries.Previous == nil || next.Dictionaries.Number != 2 {
		t.Fatalf("%q, %v, %+v", reason, err, next.Dictionaries)
	}
	b.static = next
	// The old dictionaries cost no reload of their own, and go with the next.
	b.reload("")
	g.Process.Workers = 4
	b.Set(unit.Of(g))
	b.reload("settings of the process changed")
	if b.static.Dictionaries.Previous != nil || strings.Contains(string(b.static.Files[nginxconf.File]), "hg_units_1 ") {
		t.Errorf("the old dictionaries are still there: %+v", b.static.Dictionaries)
	}
}

func TestForgetPushesEverythingAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "c")
	changes, _ := b.Delta(b.static)
	b.Applied(changes)
	b.drop("a.test")
	b.add("b.test", "")
	b.Forget()
	b.push(0, "put globals globals", "put backend d/b.test/80", "put host b.test", "put name b.test")
}

func TestHalfAPush(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "c")
	changes, _ := b.Delta(b.static)
	b.Applied(changes[:2])
	b.push(0, "put backend d/a.test/80", "put host a.test", "put name a.test")
	// What changed while it was on its way is pushed again.
	b.Set(unit.Of(host("a.test", "other")))
	changes, _ = b.Delta(b.static)
	b.Set(unit.Of(host("a.test", "third")))
	b.Applied(changes)
	b.push(0, "put host a.test")
	b.push(0)
}

// TestAppliedNames: only units that were pushed, of one kind.
func TestAppliedNames(t *testing.T) {
	b := newBench(t)
	for _, key := range []string{"ns/b/80", "ns/a/80"} {
		b.Set(unit.Of(model.Backend{Key: key}))
	}
	if got := b.AppliedNames(unit.Backend); len(got) != 0 {
		t.Errorf("%q before the push", got)
	}
	changes, _ := b.Delta(b.static)
	b.Applied(changes)
	if got, want := b.AppliedNames(unit.Backend), []string{"ns/a/80", "ns/b/80"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDictionariesGrow(t *testing.T) {
	t.Parallel()
	d := nginxconf.Dictionaries{Number: 3, Units: 100, Versions: 100, Certificates: 100, Previous: &nginxconf.Dictionaries{Number: 2}}
	for _, c := range []struct {
		used nginxconf.Usage
		full bool
		want *nginxconf.Dictionaries
	}{
		{nginxconf.Usage{Units: 59, Versions: 59, Certificates: 59}, false, nil},
		{nginxconf.Usage{Units: 60}, false, &nginxconf.Dictionaries{Number: 4, Units: 200, Versions: 100, Certificates: 100}},
		{nginxconf.Usage{Versions: 60, Certificates: 99}, false, &nginxconf.Dictionaries{Number: 4, Units: 100, Versions: 200, Certificates: 200}},
		{nginxconf.Usage{}, true, &nginxconf.Dictionaries{Number: 4, Units: 200, Versions: 200, Certificates: 200}},
	} {
		if c.want != nil {
			c.want.Previous = &nginxconf.Dictionaries{Number: 3, Units: 100, Versions: 100, Certificates: 100}
		}
		if diff := cmp.Diff(c.want, d.Grown(c.used, c.full)); diff != "" {
			t.Errorf("%+v, full %v (-want +got):\n%s", c.used, c.full, diff)
		}
	}
	if first := nginxconf.FirstDictionaries(1, 1<<30); first.Units < 4<<30 || first.Certificates < 4<<30 || first.Number != 1 || first.Previous != nil {
		t.Errorf("for a gigabyte: %+v", first)
	}
	if first := nginxconf.FirstDictionaries(1_000_000, 0); first.Units < 512_000_000 || first.Versions < 512_000_000 {
		t.Errorf("for a million units: %+v", first)
	}
}

func TestConfigurationDoesNotGrowWithHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	few := b.static.Files[nginxconf.File]
	for i := range 1000 {
		b.add(fmt.Sprintf("h%d.test", i), "c"+strconv.Itoa(i))
	}
	next, reason, err := b.Next(b.env, b.static, nil)
	if err != nil || reason != "" || !bytes.Equal(few, next.Files[nginxconf.File]) {
		t.Errorf("with 1,000 hosts: %q, %v", reason, err)
	}
	if n := b.Count(unit.Host); n != 1000 {
		t.Errorf("%d hosts", n)
	}
}
