package affinity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const (
	terminating = "{ready: false, serving: true, terminating: true}"
	ended       = "{ready: false, serving: false, terminating: true}"
)

// condition is the slice of an endpoint of Endpoints(service, …), with other conditions.
func condition(service string, index int, address, conditions string) string {
	slice := strings.Replace(headgatetest.Endpoints(service, address), service+"-0", fmt.Sprintf("%s-%d", service, index), 1)
	return slice + "  conditions: " + conditions + "\n"
}

// begin begins sessions, and returns their endpoints by cookie.
func (f *fleet) begin(t *testing.T, count int) (sessions map[string]string) {
	t.Helper()
	sessions = map[string]string{}
	for range count {
		at, r := f.ask(t, "")
		cookie, _ := sent(t, r)
		if cookie == "" {
			t.Fatal("a new session gets no cookie")
		}
		sessions[cookie] = at
	}
	return sessions
}

// wantStay checks that sessions are where they were, if that is not gone. All others
// get moved, and get a new cookie in persistent mode.
func (f *fleet) wantStay(t *testing.T, when string, sessions map[string]string, gone string) {
	t.Helper()
	for cookie, want := range sessions {
		at, r := f.ask(t, cookie)
		if want == gone && at == gone || want != gone && at != want {
			t.Errorf("%s: a session moved from %s to %s", when, want, at)
		}
		if again, _ := sent(t, r); want != gone && again != "" {
			t.Errorf("%s: the cookie is set again: %s", when, again)
		}
	}
}

// at returns a session's cookie that leads to an endpoint.
func at(t *testing.T, sessions map[string]string, endpoint string) string {
	t.Helper()
	for cookie, at := range sessions {
		if at == endpoint {
			return cookie
		}
	}
	t.Fatalf("none of %d sessions is at %s", len(sessions), endpoint)
	return ""
}

// An endpoint that is terminating keeps its sessions until it does not serve any more, and
// gets no new ones.
func TestTerminating(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	for _, mode := range []string{"balanced", "persistent"} {
		f := newFleet(t, 4, "", "affinity-mode: "+mode)
		// That one of the four has none of them happens less than once in a hundred million times.
		sessions := f.begin(t, 100)
		// All but one: most keys are of theirs.
		for i := range 3 {
			f.g.Apply(condition("fleet", i, f.addresses[i], terminating))
		}
		f.wantStay(t, mode+", three are terminating", sessions, "")
		after := f.begin(t, 50)
		for _, at := range after {
			if at != f.addresses[3] {
				t.Errorf("%s: a session began at the terminating endpoint %s", mode, at)
			}
		}
		f.wantStay(t, mode+", begun later", after, "")

		f.g.Apply(condition("fleet", 0, f.addresses[0], ended))
		f.wantStay(t, mode+", one has ended", sessions, f.addresses[0])
		f.g.Delete("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-0}\n")
		f.wantStay(t, mode+", one is gone", sessions, f.addresses[0])
		f.wantStay(t, mode+", one is gone", after, "")
		_, r := f.ask(t, at(t, sessions, f.addresses[0]))
		if cookie, _ := sent(t, r); (cookie != "") != (mode == "persistent") {
			t.Errorf("%s: a session of an endpoint that is gone gets the cookie %q", mode, cookie)
		}

		// As the last one is terminating, all are asked again.
		f.g.Apply(condition("fleet", 3, f.addresses[3], terminating))
		f.wantStay(t, mode+", all are terminating", after, "")
		f.wantStay(t, mode+", all are terminating", sessions, f.addresses[0])
		if n := f.g.Value(f.g.Metrics.Reloads); n != 0 {
			t.Errorf("%d reloads", n)
		}
	}
}

// A session whose terminating endpoint fails moves to another one, and stays there.
func TestTerminatingFails(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "", "proxy-next-upstream: error http_503")
	for _, mode := range []string{"balanced", "persistent"} {
		f.annotate("affinity-mode: "+mode, "proxy-next-upstream: error http_503")
		sessions := f.begin(t, 100)
		failing := f.addresses[1]
		old := at(t, sessions, failing)
		f.g.Apply(condition("fleet", 1, failing, terminating))
		f.statuses[1].Store(503)
		to, r := f.ask(t, old)
		cookie, _ := sent(t, r)
		if to == failing || cookie == "" {
			t.Fatalf("%s: endpoint %s answers, with the cookie %q", mode, to, cookie)
		}
		f.statuses[1].Store(0)
		f.wantStay(t, mode+", moved", map[string]string{cookie: to}, "")
		f.wantStay(t, mode+", not moved", map[string]string{old: failing}, "")
		f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	}
}

// The sessions of a canary stay at its terminating endpoints too.
func TestTerminatingCanary(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, "")
	canary := f.addresses[2:]
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses[:2]...) + "---\nkind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-2}\n---\nkind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-3}\n" +
		headgatetest.Service("next") + headgatetest.Endpoints("next", canary...) +
		headgatetest.Ingress("next", host, "/", "next", "canary: true", "canary-weight: 50"))
	for _, mode := range []string{"balanced", "persistent"} {
		f.annotate("affinity-mode: " + mode)
		sessions := f.begin(t, 120)
		at(t, sessions, canary[0])
		f.g.Apply(condition("next", 0, canary[0], terminating))
		f.wantStay(t, mode+", one of the canary is terminating", sessions, "")
		for _, at := range f.begin(t, 50) {
			if at == canary[0] {
				t.Errorf("%s: a session began at the terminating endpoint %s", mode, at)
			}
		}
		f.g.Apply(condition("next", 0, canary[0], ended))
		f.wantStay(t, mode+", one of the canary has ended", sessions, canary[0])
		f.g.Apply(headgatetest.Endpoints("next", canary...))
	}
}
