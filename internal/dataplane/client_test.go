package dataplane

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/unit"
)

func host(name string, size int) unit.Change {
	return unit.Change{Kind: "host", Name: name, Version: "1", Payload: make([]byte, size)}
}

func TestPush(t *testing.T) {
	f := serve(t, nil)
	entries := []unit.Change{host("a", 10), host("b", 600<<10), host("c", 10), {Kind: "host", Name: "d", Delete: true}}
	result, err := New(f.socket).Push(t.Context(), 1, 2, entries)
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Applied: 4, Memory: Memory{Units: Zone{Capacity: 10, Free: 4}}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	got, err := join(f.parts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := same(entries, got); diff != "" {
		t.Error(diff)
	}
	if f.conns != 1 {
		t.Errorf("%d connections for one push", f.conns)
	}
}

func TestPushNothing(t *testing.T) {
	result, err := New(filepath.Join(t.TempDir(), "none")).Push(t.Context(), 1, 1, nil)
	if err != nil || result.Applied != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// Each kind of failure has its own error, and the push returns how far it got.
func TestPushFailures(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"full":     {507, `{"error": "short of 3 pages"}`, ErrFull},
		"conflict": {409, `{"error": "generation 3 here"}`, ErrElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			f := serve(t, func(*http.Request) (int, string) {
				if seen++; seen <= 2 {
					return 0, ""
				}
				return test.status, test.body
			})
			entries := []unit.Change{host("a", 200<<10), host("b", 200<<10), host("c", 200<<10), host("d", 10)}
			result, err := New(f.socket).Push(t.Context(), 1, 1, entries)
			if !errors.Is(err, test.want) || result.Applied != 2 {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

func TestPushRefused(t *testing.T) {
	f := serve(t, func(*http.Request) (int, string) { return 400, `{"error": "unknown kind"}` })
	result, err := New(f.socket).Push(t.Context(), 1, 1, []unit.Change{host("a", 1)})
	if err == nil || !strings.HasSuffix(err.Error(), "rejected the request (400): unknown kind") || result.Applied != 0 {
		t.Error(err, result)
	}
	if len(f.requests) != 1 {
		t.Errorf("%d requests: a refused frame is refused again", len(f.requests))
	}
}

// Parts of a unit count only when all of them have arrived.
func TestPushCountsWholeUnits(t *testing.T) {
	seen := 0
	f := serve(t, func(*http.Request) (int, string) {
		if seen++; seen < 4 {
			return 0, ""
		}
		return 507, ""
	})
	result, err := New(f.socket).Push(t.Context(), 1, 1, []unit.Change{host("a", 1), host("b", 700<<10)})
	if !errors.Is(err, ErrFull) || result.Applied != 1 {
		t.Errorf("%v, %+v", err, result)
	}
}

// An old worker answers 409 on each of its connections. The frame is sent to
// another one on a new connection.
func TestPushLeavesOldWorkers(t *testing.T) {
	old := 0
	f := serve(t, func(*http.Request) (int, string) {
		if old++; old <= 3 {
			return 409, `{"error": "shutting down"}`
		}
		return 0, ""
	})
	result, err := New(f.socket).Push(t.Context(), 1, 1, []unit.Change{host("a", 1)})
	if err != nil || result.Applied != 1 {
		t.Fatalf("%v, %+v", err, result)
	}
	if f.conns != 4 {
		t.Errorf("%d connections for 4 tries", f.conns)
	}
}

func TestPushBadEntry(t *testing.T) {
	f := serve(t, nil)
	for _, bad := range []unit.Change{
		{Kind: "host", Version: "1"},
		{Kind: "ho st", Name: "a", Version: "1"},
		{Kind: "host", Name: "a", Version: "XYZ"},
		{Kind: "host", Name: "a", Version: "1", Needs: -1},
		{Name: "a", Delete: true},
	} {
		if _, err := New(f.socket).Push(t.Context(), 1, 1, []unit.Change{host("a", 1), bad}); err == nil {
			t.Errorf("%+v was sent", bad)
		}
	}
	if len(f.requests) != 0 {
		t.Errorf("sent %v", f.requests)
	}
}

func TestUnreachable(t *testing.T) {
	client := New(filepath.Join(t.TempDir(), "none"))
	if _, err := client.State(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	f := serve(t, nil)
	f.mu.Lock() // The server accepts and does not respond.
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := New(f.socket).Loaded(ctx)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A worker that shuts down closes its idle connections, and no request is lost.
func TestClosedIdleConnection(t *testing.T) {
	f := serve(t, nil)
	client := New(f.socket)
	for range 3 {
		if err := client.Draining(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		client.CloseIdle()
	}
	if f.conns != 3 {
		t.Errorf("%d connections, want 3", f.conns)
	}
}

func TestSwitches(t *testing.T) {
	f := serve(t, nil)
	client := New(f.socket)
	if err := errors.Join(client.Loaded(t.Context()), client.Draining(t.Context(), true),
		client.Draining(t.Context(), false), client.Leaving(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{"PUT /v1/loaded", "PUT /v1/draining", "DELETE /v1/draining", "PUT /v1/leaving"}
	if diff := cmp.Diff(want, f.requests); diff != "" {
		t.Error(diff)
	}
}

func TestState(t *testing.T) {
	f := serve(t, func(*http.Request) (int, string) {
		return 200, `{"instance": "i", "dictionary": 1, "generation": 3, "pid": 4242, "revision": 17,
			"loaded": true, "draining": false, "leaving": true, "accepting": [{"generation": 3, "pid": 4242}],
			"memory": {"units": {"capacity": 9, "free": 8}, "versions": {"capacity": 7, "free": 6}, "certificates": {"capacity": 5, "free": 4}},
			"broken": [{"kind": "host", "name": "h", "version": "a", "error": "e"}], "cache": {"bytes": 2, "units": 1, "decoded": 3}, "refusals": {"regex": {"evil": 4}}}`
	})
	got, err := New(f.socket).State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := State{
		Instance: "i", Dictionary: 1, Generation: 3, PID: 4242, Revision: 17, Loaded: true, Leaving: true,
		Accepting: []Worker{{3, 4242}},
		Memory:    Memory{Zone{9, 8}, Zone{7, 6}, Zone{5, 4}},
		Broken:    []Broken{{"host", "h", "a", "e"}},
		Cache:     Cache{2, 1, 3},
		Refusals:  map[string]map[string]int64{"regex": {"evil": 4}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnit(t *testing.T) {
	f := serve(t, func(r *http.Request) (int, string) {
		if r.URL.Path == "/v1/hosts/none" {
			return 404, `{"error": "no such host"}`
		}
		return 200, `{"version": "ab", "needs": 2, "unit": {"routes": []}}`
	})
	client := New(f.socket)
	want := Unit{Version: "ab", Needs: 2, Payload: []byte(`{"routes": []}`)}
	for path, name := range map[string]unit.Key{
		"/v1/hosts/*.example.com":        {Kind: "host", Name: "*.example.com"},
		"/v1/names/_":                    {Kind: "name", Name: "_"},
		"/v1/backends/default/web/a?b%2": {Kind: "backend", Name: "default/web/a?b%2"},
		"/v1/globals":                    {Kind: "globals", Name: "globals"},
	} {
		f.requests = nil
		got, err := client.Unit(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"GET " + path}, f.requests); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := client.Unit(t.Context(), unit.Host.Key("none")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// TestUnits: NGINX may read fewer than it is asked for, and does not have all of them.
func TestUnits(t *testing.T) {
	var asked []string
	f := serve(t, func(r *http.Request) (int, string) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+strings.ReplaceAll(string(body), "\n", ","))
		first, _, _ := strings.Cut(string(body), "\n")
		if first == "gone.test" {
			return 200, `{"read": 1, "units": {}}`
		}
		return 200, `{"read": 1, "units": {"` + first + `": {"version": "ab", "unit": {}}}}`
	})
	client := New(f.socket)
	var got []string
	visit := func(name string, u Unit) error {
		got = append(got, name+" "+u.Version)
		return nil
	}
	if err := client.Units(t.Context(), unit.Host, []string{"a.test", "gone.test", "b.test"}, visit); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.test ab", "b.test ab"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"POST /v1/hosts a.test,gone.test,b.test", "POST /v1/hosts gone.test,b.test", "POST /v1/hosts b.test"}, asked); diff != "" {
		t.Error(diff)
	}
	if client.Units(t.Context(), unit.Host, nil, visit) != nil || len(asked) != 3 {
		t.Errorf("asked for nothing: %v", asked)
	}
}

// TestNoUnits: an answer that would never end is an error.
func TestNoUnits(t *testing.T) {
	f := serve(t, func(*http.Request) (int, string) { return 200, `{"read": 0, "units": {}}` })
	if err := New(f.socket).Units(t.Context(), unit.OCSPResponse, []string{"a"}, nil); err == nil || !strings.Contains(err.Error(), "/v1/ocsp: 0 of 1") {
		t.Error(err)
	}
}
