package dataplane_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

var contentName = regexp.MustCompile(`"([0-9a-f]{64})"`)

// TestGuardsWithoutContents removes from the shared memory the users and lists that guards
// refer to. Without them no client may pass, also where one auth check is enough.
func TestGuardsWithoutContents(t *testing.T) {
	t.Parallel()
	record := newRecord()
	guarded := map[string][]string{
		"basic": users, "allow": {"allowlist-source-range: 127.0.0.1"}, "deny": {"denylist-source-range: 127.0.0.4"},
		"either": append([]string{"allowlist-source-range: 127.0.0.1", "satisfy: any"}, users...),
	}
	manifests := usersSecret + served("app", record.backend(t, "app")) + headgatetest.Ingress("open", "open.test", "/", "app")
	for name, annotations := range guarded {
		manifests += headgatetest.Ingress(name, name+".test", "/", "app", annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	ask := func(name, mark string) int {
		header := http.Header{"X-Mark": {name + mark}, "Authorization": password["Authorization"]}
		return g.Do(headgatetest.Request{Host: name + ".test", Header: header}).Status
	}
	var lost []unit.Change
	for name := range guarded {
		if status := ask(name, ""); status != 200 || record.of(name) == "" {
			t.Errorf("%s: %d: a client that may pass reaches no backend", name, status)
		}
		host, err := g.Client.Unit(t.Context(), unit.Key{Kind: unit.Host, Name: name + ".test"})
		if err != nil {
			t.Fatal(err)
		}
		found := contentName.FindAllStringSubmatch(string(host.Payload), -1)
		if len(found) == 0 {
			t.Fatalf("%s refers to no content: %s", name, host.Payload)
		}
		for _, names := range found {
			lost = append(lost, unit.Change{Kind: unit.Content, Name: names[1], Delete: true})
		}
	}
	state := g.State()
	if _, err := g.Client.Push(t.Context(), state.Dictionary, state.Generation, lost); err != nil {
		t.Fatal(err)
	}
	for name := range guarded {
		if status := ask(name, " without"); status != 503 || record.of(name+" without") != "" {
			t.Errorf("%s: %d without what it refers to, and the backend got %q", name, status, record.of(name+" without"))
		}
	}
	if ask("open", "") != 200 || record.of("open") == "" {
		t.Error("a client reaches no open host")
	}
}
