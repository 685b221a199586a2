package plan_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// guarded is a host with a route that has a policy.
func guarded(profile model.Profile, policy string) model.Host {
	h := host("a.test", "d/a.test/80", profile)
	h.Routes[0].Policies = []model.Policy{{Feature: "guard", Value: policy}}
	return h
}

// hostIn is the packed host in changes, empty if it is not pushed.
func hostIn(changes []unit.Change) string {
	for _, c := range changes {
		if c.Kind == unit.Host {
			return string(c.Payload)
		}
	}
	return ""
}

// TestGuardsDontWaitForProfiles: what a host changes beside its profile is pushed at once,
// with the nearest stricter profile that all configurations have. Without one its paths
// are denied, unless nothing but the destination of requests changes.
func TestGuardsDontWaitForProfiles(t *testing.T) {
	t.Parallel()
	strict := unlike(value("client_max_body_size", mib/2))
	for name, c := range map[string]struct {
		asked  model.Profile
		policy string
		// served is the profile, and denied set where the paths are.
		served model.Profile
		denied bool
		held   bool
		effect string
	}{
		"a larger limit":               {asked: large(), policy: "new", served: usualProfile(), effect: "client max body size 1m, not 10m"},
		"a smaller limit":              {asked: unlike(value("client_max_body_size", mib*3/4)), policy: "new", served: strict, effect: "512k, not 768k"},
		"a profile like no other":      {asked: by(model.GRPC, false), policy: "new", served: usualProfile(), denied: true, effect: "the paths answer 503"},
		"nothing but another protocol": {asked: by(model.GRPC, false), policy: "old", held: true, effect: "the host is served as before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.add("b.test", "", strict)
			b.reload("profile " + strict.Name() + " is new")
			b.Set(unit.Of(guarded(usualProfile(), "old")))
			changes, _ := b.Delta(b.static)
			b.Applied(changes)

			b.Set(unit.Of(guarded(c.asked, c.policy)))
			want := guarded(c.served, c.policy)
			want.Routes[0].Denied = c.denied
			changes, held := b.Delta(b.static)
			got := hostIn(changes)
			if wanted := string(unit.FromHost(want).Payload); c.held && got != "" || !c.held && got != wanted || held != 1 {
				t.Errorf("%d held, pushed\n%s\nwant\n%s", held, got, wanted)
			}
			explained := guarded(c.asked, c.policy)
			if b.SubstituteHost(&explained); !c.held && string(unit.FromHost(explained).Payload) != got {
				t.Errorf("%+v is explained", explained)
			}
			b.Applied(changes)
			if fs, hosts := b.Waiting("it rains"), waitingHosts(b); len(fs) != 1 || hosts != 1 || !strings.Contains(fs[0].Effect, c.effect) || !strings.Contains(fs[0].Message, "it rains") {
				t.Errorf("%d hosts wait, %+v", hosts, fs)
			}
			// The next change finds the same, and one that needs nothing new ends it.
			next, _, err := b.Next(b.env, b.static, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, statics := range [][]plan.Static{{b.static, next}, {b.static}} {
				b.Set(unit.Of(guarded(c.asked, "newer")))
				changes, held = b.Delta(statics[0], statics[1:]...)
				if !strings.Contains(hostIn(changes), "newer") || held != 1 {
					t.Errorf("%d held, %s", held, hostIn(changes))
				}
			}
			b.Applied(changes)
			b.static = next
			changes, held = b.Delta(b.static)
			if held != 0 || hostIn(changes) != string(unit.FromHost(guarded(c.asked, "newer")).Payload) {
				t.Errorf("after the reload %d held, %s", held, hostIn(changes))
			}
			b.Applied(changes)
			if fs, hosts := b.Waiting("it rains"), waitingHosts(b); len(fs)+hosts > 0 {
				t.Errorf("%d hosts wait, %+v", hosts, fs)
			}
		})
	}
}

func waitingHosts(b *bench) int {
	n, _ := b.WaitingHosts()
	return n
}

// TestTakenBack: a host that does not want what it waits for does not wait.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Set(unit.Of(guarded(usualProfile(), "old")))
	changes, _ := b.Delta(b.static)
	b.Applied(changes)
	for _, again := range []func(){
		func() { b.Set(unit.Of(guarded(usualProfile(), "old"))) },
		func() { b.Set(unit.Built{Key: unit.Host.Key("a.test")}) },
	} {
		b.Set(unit.Of(guarded(large(), "new")))
		changes, held := b.Delta(b.static)
		if held != 1 {
			t.Errorf("%d held", held)
		}
		b.Applied(changes)
		again()
		changes, held = b.Delta(b.static)
		b.Applied(changes)
		if hosts := waitingHosts(b); len(changes) != 1 || held+hosts != 0 {
			t.Errorf("%d held, %d hosts wait, %+v", held, hosts, changes)
		}
	}
}

// TestForTenants: only what hosts ask for counts as theirs.
func TestForTenants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add("a.test", "", large())
	if !b.ForTenants(b.env, b.static, nil) {
		t.Error("a host's profile counts as the administrator's")
	}
	if b.ForTenants(b.env, b.static, &nginxconf.Dictionaries{}) {
		t.Error("larger memory counts as a host's")
	}
	globals := usualGlobals()
	globals.Process.Workers = 7
	b.Set(unit.Of(globals))
	if b.ForTenants(b.env, b.static, nil) {
		t.Error("a setting of the process counts as a host's")
	}
}

// TestHostsToBuild: a host that is to be built later keeps its backends, and a new one has
// no name until it is there.
func TestHostsToBuild(t *testing.T) {
	b := newBench(t)
	b.push(0, "put globals globals")
	b.Set(unit.Of(model.Backend{Key: "shop/web/80"}))
	b.Set(unit.Of(model.Backend{Key: "shop/auth/80"}))
	b.Set(unit.Of(model.Backend{Key: "shop/free/80"}))
	host := model.Host{Name: "a.test", Routes: []model.Route{{Kind: model.Prefix, Path: "/", Backend: "shop/web/80", Profile: usualGlobals().Default,
		Policies: []model.Policy{{Feature: "auth", Value: []string{`a "quoted" text`, "shop/auth/80"}}}}}}
	b.Set(unit.Of(host))
	b.Set(unit.Of(model.Name{Name: "a.test", Host: "a.test"}))
	b.push(0, "put backend shop/auth/80", "put backend shop/free/80", "put backend shop/web/80", "put host a.test", "put name a.test")

	b.Expect("a.test")
	b.Expect("new.test")
	b.Set(unit.Of(model.Name{Name: "new.test", Host: "new.test"}))
	for _, backend := range []string{"shop/web/80", "shop/auth/80", "shop/free/80"} {
		b.Set(unit.Built{Key: unit.Backend.Key(backend)})
	}
	b.push(1, "del backend shop/free/80")

	host.Routes[0].Backend = "shop/free/80"
	host.Routes[0].Policies = nil
	b.Set(unit.Of(host))
	b.Set(unit.Of(model.Host{Name: "new.test", Routes: host.Routes}))
	b.push(0, "put host a.test", "put host new.test", "put name new.test", "del backend shop/auth/80", "del backend shop/web/80")
}
