package dataplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// startControl fills a bare Instance with what control.test needs, which is served
// by an echo backend of that name, and returns the units.
func startControl(t testing.TB, g *headgatetest.Instance) []unit.Change {
	t.Helper()
	units := []unit.Change{
		{Kind: "globals", Name: "globals", Version: "a0", Payload: []byte(`{"policies":[]}`)},
		{Kind: "backend", Name: "default/control/80", Version: "a1", Payload: []byte(`{"endpoints":["` + headgatetest.StartEcho(t, "control") + `"]}`)},
		{Kind: "host", Name: "control.test", Version: "a2", Payload: []byte(
			`{"backends":["default/control/80"],"locations":["` + g.DefaultProfile + `"],"routes":[{"prefix":"/","backend":1,"location":1}]}`)},
		{Kind: "name", Name: "control.test", Version: "a3", Payload: []byte(`{"host":"control.test"}`)},
		{Kind: "host", Name: "_", Version: "a4", Payload: []byte(`{"routes":[]}`)},
		{Kind: "name", Name: "_", Version: "a5", Payload: []byte(`{"host":"_"}`)},
	}
	if _, err := g.Client.Push(t.Context(), 1, 1, units); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	return units
}

// An api asks the data plane with bytes of the test's own.
type api struct {
	t      testing.TB
	client *http.Client
}

func newAPI(t testing.TB, g *headgatetest.Instance) api {
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", g.RunDir.Socket())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return api{t, &http.Client{Transport: transport, Timeout: headgatetest.Timeout}}
}

// ask returns the answer's status and body. A nil body is sent without a
// length.
func (a api) ask(method, path string, body io.Reader) (int, string) {
	a.t.Helper()
	request, err := http.NewRequest(method, "http://headgate"+path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// apiState is what the API reports about control.test and what it needs.
func apiState(t testing.TB, g *headgatetest.Instance) string {
	t.Helper()
	a := newAPI(t, g)
	var all strings.Builder
	for _, path := range []string{
		"/v1/globals", "/v1/backends/default/control/80", "/v1/hosts/control.test", "/v1/names/control.test", "/v1/hosts/_", "/v1/names/_",
	} {
		status, text := a.ask("GET", path, nil)
		fmt.Fprintln(&all, path, status, text)
	}
	return all.String()
}

// framed puts a first line in front of entries that fits them.
func framed(dictionary, generation, count int, entries string) string {
	return fmt.Sprintf("headgate 1 %d %d %d %d\n%s", dictionary, generation, count, crc32.ChecksumIEEE([]byte(entries)), entries)
}

// put is an entry of one part, and part one of several.
func put(kind, name, payload string) string { return part(kind, "1/1", name, payload) }

func part(kind, number, name, payload string) string {
	return fmt.Sprintf("put %s 0 ab %s %d %d\n%s%s", kind, number, len(name), len(payload), name, payload)
}

// badFrames are frames that are refused: each would change the host
// control.test if it were not. The name says what is wrong.
func badFrames() map[string]string {
	change := put("host", "control.test", `{"routes":[]}`)
	good := framed(1, 1, 1, change)
	line := func(text string) string { return framed(1, 1, 1, text) }
	return map[string]string{
		"empty":                     "",
		"not a frame":               "hello",
		"no line end":               strings.TrimRight(framed(1, 1, 0, ""), "\n"),
		"another format":            strings.Replace(good, "headgate 1", "headgate 2", 1),
		"another name":              strings.Replace(good, "headgate", "tailgate", 1),
		"negative dictionary":       framed(-1, 1, 1, change),
		"checksum off":              strings.Replace(good, "routes", "Routes", 1),
		"checksum not a number":     "headgate 1 1 1 1 x\n" + change,
		"too few announced":         framed(1, 1, 0, change),
		"too many announced":        framed(1, 1, 2, change),
		"second entry is bad":       framed(1, 1, 2, change+"rubbish\n"),
		"bytes behind":              framed(1, 1, 1, change+"x"),
		"cut short":                 framed(1, 1, 1, change[:len(change)-1]),
		"unknown word":              line("take host 12\ncontrol.test"),
		"unknown kind":              line(put("route", "control.test", "{}")),
		"kind with capitals":        line(put("Host", "control.test", "{}")),
		"kind of Lua's":             line(put("__index", "control.test", "{}")),
		"no name":                   line("put host 0 ab 1/1 0 2\n{}"),
		"long name":                 line(put("host", strings.Repeat("x", 513), "{}")),
		"no version":                line("put host 0  1/1 12 2\ncontrol.test{}"),
		"version not hexadecimal":   line("put host 0 xy 1/1 12 2\ncontrol.test{}"),
		"version in capitals":       line("put host 0 AB 1/1 12 2\ncontrol.test{}"),
		"long version":              line("put host 0 " + strings.Repeat("a", 65) + " 1/1 12 2\ncontrol.test{}"),
		"empty second version":      line("put host 0 ab= 1/1 12 2\ncontrol.test{}"),
		"long second version":       line("put host 0 ab=" + strings.Repeat("a", 65) + " 1/1 12 2\ncontrol.test{}"),
		"negative generation":       line("put host -1 ab 1/1 12 2\ncontrol.test{}"),
		"fractional generation":     line("put host 1.5 ab 1/1 12 2\ncontrol.test{}"),
		"hexadecimal length":        line("put host 0 ab 1/1 12 0x2\ncontrol.test{}"),
		"negative length":           line("put host 0 ab 1/1 12 -2\ncontrol.test{}"),
		"huge length":               line("put host 0 ab 1/1 12 " + strings.Repeat("9", 400) + "\ncontrol.test{}"),
		"huge generation":           line("put host " + strings.Repeat("9", 400) + " ab 1/1 12 2\ncontrol.test{}"),
		"owner in capitals":         line("put host 0 ab 1/1 12 2 Team\ncontrol.test{}"),
		"two owners":                line("put host 0 ab 1/1 12 2 a b\ncontrol.test{}"),
		"owner without a name":      line("put host 0 ab 1/1 12 2 \ncontrol.test{}"),
		"long owner":                line("put host 0 ab 1/1 12 2 " + strings.Repeat("a", 64) + "\ncontrol.test{}"),
		"part 0":                    line(part("host", "0/1", "control.test", "{}")),
		"part beyond the last":      line(part("host", "3/2", "control.test", "{}")),
		"too many parts":            line(part("host", "1/100001", "control.test", "{}")),
		"part beside others":        framed(1, 1, 2, part("host", "1/2", "new.test", "{}")+change),
		"last part without others":  line(part("host", "2/2", "control.test", "{}")),
		"later part without others": line(part("host", "2/3", "control.test", "{}")),
		"delete without a length":   line("del host\ncontrol.test"),
		"delete of an unknown kind": line("del route 12\ncontrol.test"),
	}
}

// A frame that the format does not allow is refused with a reason and changes
// nothing.
func TestBadFramesChangeNothing(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	startControl(t, g)
	wantEcho(t, g.Get("control.test", "/"), "control")
	a := newAPI(t, g)
	before, state := apiState(t, g), g.State()
	check := func(name string, want int, body io.Reader) {
		t.Helper()
		status, text := a.ask("POST", "/v1/apply", body)
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Error == "" || status != want {
			t.Errorf("%s: %d %s, want %d with a reason", name, status, text, want)
		}
		if now := g.State(); now.Revision != state.Revision || now.PID != state.PID || now.Memory != state.Memory {
			t.Fatalf("%s: the state is %+v, was %+v", name, now, state)
		}
		if after := apiState(t, g); after != before {
			t.Fatalf("%s changed the units from\n%s\nto\n%s", name, before, after)
		}
	}
	for name, text := range badFrames() {
		check(name, 400, strings.NewReader(text))
	}
	change := put("host", "control.test", `{"routes":[]}`)
	check("another generation", 409, strings.NewReader(framed(1, 2, 1, change)))
	check("another dictionary", 409, strings.NewReader(framed(2, 1, 1, change)))
	check("an earlier generation", 409, strings.NewReader(framed(1, 0, 1, change)))
	long := framed(1, 1, 1, put("host", "control.test", `{"routes":[]`+strings.Repeat(" ", dataplane.MaxFrame)+"}"))
	check("too long", 413, strings.NewReader(long))
	check("far too long", 413, bytes.NewReader(make([]byte, 8<<20)))
	// A body of unknown length is sent in chunks.
	check("without a length", 411, io.MultiReader(strings.NewReader(framed(1, 1, 1, change))))
	wantEcho(t, g.Get("control.test", "/"), "control")
}

// The longest frame is taken.
func TestLongestFrame(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	a := newAPI(t, g)
	long := func(payload int) string {
		// Checksums of two payloads may differ in length, this one's does not.
		entry := put("host", "long.test", strings.Repeat("x", payload))
		return fmt.Sprintf("headgate 1 1 1 1 %012d\n%s", crc32.ChecksumIEEE([]byte(entry)), entry)
	}
	room := dataplane.MaxFrame - len(long(100000)) + 100000
	for _, c := range []struct{ more, want int }{{0, 200}, {1, 413}} {
		frame := long(room + c.more)
		if status, text := a.ask("POST", "/v1/apply", strings.NewReader(frame)); status != c.want {
			t.Errorf("%d bytes: %d %s, want %d", len(frame), status, text, c.want)
		}
	}
}

// A unit in parts shows when its last part is there.
func TestParts(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	a := newAPI(t, g)
	send := func(number, payload string, want int) {
		t.Helper()
		frame := framed(1, 1, 1, part("host", number, "a.test", payload))
		if status, text := a.ask("POST", "/v1/apply", strings.NewReader(frame)); status != want {
			t.Errorf("part %s: %d %s, want %d", number, status, text, want)
		}
	}
	absent := func() {
		t.Helper()
		if _, err := g.Client.Unit(t.Context(), unit.Host.Key("a.test")); !errors.Is(err, dataplane.ErrNotFound) {
			t.Errorf("before the last part: %v, want that there is none", err)
		}
	}
	send("2/3", `":`, 400)
	send("3/3", `[]}`, 400)
	send("1/3", `{"rou`, 200)
	send("3/3", `[]}`, 400)
	absent()
	send("2/3", `tes":`, 200)
	absent()
	send("3/3", `[]}`, 200)
	unit, err := g.Client.Unit(t.Context(), unit.Host.Key("a.test"))
	if err != nil || string(unit.Payload) != `{"routes":[]}` {
		t.Errorf("%s, %v: want the parts in order", unit.Payload, err)
	}
	// Nothing of the parts is left to be joined again.
	send("3/3", `[]}`, 400)
}

// A payload that can't be decoded leaves a worker at what it has.
func TestPayloadThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	units := startControl(t, g)
	wantEcho(t, g.Get("control.test", "/"), "control")
	bad := map[string]string{
		"globals": `{"policies":[["no_such_feature",{}]]}`,
		"backend": `{"endpoints":["unix:/tmp/x"]}`,
		"host":    `{"routes":[{"prefix":"/","location":7}]}`,
		"name":    `{`,
	}
	entries := []unit.Change{
		{Kind: "host", Name: "new.test", Version: "b1", Payload: []byte("[")},
		{Kind: "name", Name: "new.test", Version: "b2", Payload: []byte(`{"host":"new.test"}`)},
	}
	for _, u := range units[:4] {
		u.Version, u.Payload = "b0", []byte(bad[string(u.Kind)])
		entries = append(entries, u)
	}
	push(t, g, entries...)
	for range 3 {
		wantEcho(t, g.Get("control.test", "/"), "control")
		g.Get("new.test", "/").WantStatus(t, 503)
	}
	push(t, g, unit.Change{Kind: "certificate", Name: "c0", Version: "b4", Payload: []byte("5")})
	a := newAPI(t, g)
	for path, want := range map[string]string{"/v1/hosts/new.test": "null", "/v1/names/control.test": "null", "/v1/certificates/c0": "{}"} {
		if status, text := a.ask("GET", path, nil); status != 200 || !strings.Contains(text, `"unit":`+want+"}") || !json.Valid([]byte(text)) {
			t.Errorf("%s: %d %s, want the unit %s", path, status, text, want)
		}
	}
	broken := map[string]string{}
	for _, b := range g.State().Broken {
		broken[b.Kind+" "+b.Name] = b.Version
		if b.Error == "" {
			t.Errorf("%s %s is broken without a reason", b.Kind, b.Name)
		}
	}
	for _, e := range entries {
		if want := e.Version; e.Version != "b2" && broken[string(e.Kind)+" "+e.Name] != want {
			t.Errorf("%s %s: broken is %v, want version %s in it", e.Kind, e.Name, broken, want)
		}
	}
	push(t, g, units...)
	push(t, g, unit.Change{Kind: "host", Name: "new.test", Version: "b3", Payload: units[2].Payload})
	wantEcho(t, g.Get("control.test", "/"), "control")
	wantEcho(t, g.Get("new.test", "/"), "control")
	if b := g.State().Broken; len(b) > 0 {
		t.Errorf("still broken: %v", b)
	}
}

// Payloads of any shape of JSON must not break a worker's code.
func TestPayloadsOfTheWrongShape(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	units := startControl(t, g)
	wantEcho(t, g.Get("control.test", "/"), "control")
	shapes := []string{
		"", "null", "0", `"x"`, "true", "[]", "{}", `{"host":5}`, `{"host":null}`, `{"endpoints":5}`, `{"endpoints":[5,{}]}`, `{"endpoints":{}}`,
		`{"policies":5}`, `{"policies":[5]}`, `{"policies":[[5,5]]}`, `{"policies":[[]]}`, `{"policies":null}`,
		`{"routes":null}`, `{"routes":5}`, `{"routes":[5]}`, `{"routes":[{}]}`, `{"routes":[{"prefix":"/","location":1}]}`,
		`{"locations":["p"],"routes":[{"prefix":5,"location":1}]}`, `{"locations":[5],"routes":[{"prefix":"/","location":1}]}`,
		`{"locations":["p"],"routes":[{"prefix":"/","location":1,"backend":1}]}`,
		`{"locations":["p"],"backends":[5],"routes":[{"prefix":"/","location":1,"backend":1}]}`,
		`{"locations":["p"],"routes":[{"prefix":"/","location":1,"policies":[1]}]}`,
		`{"locations":["p"],"policies":[5],"routes":[{"prefix":"/","location":1,"policies":[1]}]}`,
		`{"locations":["p"],"policies":[["proxying"]],"routes":[{"prefix":"/","location":1,"policies":[1]}]}`,
		`{"locations":["p"],"routes":[{"prefix":"/","location":1,"policies":5}]}`,
		`{"locations":["p"],"routes":[{"exact":{},"location":1}]}`,
	}
	for i, shape := range shapes {
		for _, u := range units[:4] {
			version := u.Version
			u.Version, u.Payload = fmt.Sprintf("c%d", i), []byte(shape)
			push(t, g, u)
			if r := g.Get("control.test", "/"); r.Status >= 500 && r.Status != 503 {
				t.Errorf("%s %s: status %d", u.Kind, shape, r.Status)
			}
			u.Version = version
		}
		push(t, g, units...)
		wantEcho(t, g.Get("control.test", "/"), "control")
	}
}

// Several units are read at once, as many as the data plane likes.
func TestSeveralUnits(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	startControl(t, g)
	names := []string{"none.test"}
	var hosts []unit.Change
	for i := range 120 {
		name := fmt.Sprintf("%d.test", i)
		names = append(names, name)
		hosts = append(hosts, unit.Change{Kind: unit.Host, Name: name, Version: fmt.Sprintf("a%d", i), Payload: []byte(`{"routes":[]}`)})
	}
	push(t, g, hosts...)
	var got []string
	err := g.Client.Units(t.Context(), unit.Host, names, func(name string, u dataplane.Unit) error {
		got = append(got, name+" "+u.Version)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, host := range hosts {
		want = append(want, host.Name+" "+host.Version)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	status, text := newAPI(t, g).ask("POST", "/v1/hosts", strings.NewReader(strings.Join(names, "\n")))
	if status != 200 || !strings.HasPrefix(text, `{"read":50,`) {
		t.Errorf("%d %.80s, want 50 of %d", status, text, len(names))
	}
}

// Paths and methods that are not there.
func TestUnknownCalls(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	startControl(t, g)
	a := newAPI(t, g)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 404}, {"GET", "/v1", 404}, {"GET", "/v1/", 404}, {"GET", "/v2/state", 404}, {"POST", "/v1/state/x", 404}, {"GET", "/v1/routes/x", 404},
		{"GET", "/v1/hosts/", 404}, {"GET", "/v1/hosts/none.test", 404}, {"GET", "/v1/certificates/0", 404}, {"GET", "/v1/backends/a/b/c", 404},
		{"GET", "/v1/hosts/_", 200}, {"GET", "/v1/globals", 200}, {"GET", "/v1/state", 200},
		{"GET", "/v1/apply", 405}, {"PUT", "/v1/apply", 405}, {"DELETE", "/v1/apply", 405}, {"POST", "/v1/loaded", 405}, {"DELETE", "/v1/loaded", 405},
		{"POST", "/v1/state", 405}, {"GET", "/v1/draining", 405}, {"DELETE", "/v1/leaving", 405}, {"DELETE", "/v1/hosts/_", 405}, {"PUT", "/v1/globals", 405}, {"POST", "/v1/certificates/x", 405},
		{"POST", "/v1/features/rate_limit", 400}, {"GET", "/v1/features/rate_limit", 405}, {"POST", "/v1/features/none", 404}, {"POST", "/v1/features/cors", 404},
	} {
		status, text := a.ask(c.method, c.path, nil)
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != c.want || (status != 200) != (answer["error"] != nil) {
			t.Errorf("%s %s: %d %s, want %d and one object", c.method, c.path, status, text, c.want)
		}
	}
}

// Until the first load is complete nothing is answered but that it is not.
func TestBeforeTheFirstLoad(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	check := func(when string) {
		t.Helper()
		for _, host := range []string{"control.test", "other.test"} {
			r := g.Get(host, "/")
			if r.Status != 503 || r.Header.Get("Retry-After") == "" {
				t.Errorf("%s, %s: status %d, headers %v; want 503 with Retry-After", when, host, r.Status, r.Header)
			}
		}
	}
	check("with nothing")
	push(t, g, unit.Change{Kind: "globals", Name: "globals", Version: "1", Payload: []byte(`{"policies":[]}`)},
		unit.Change{Kind: "host", Name: "_", Version: "2", Payload: []byte(`{"routes":[]}`)},
		unit.Change{Kind: "name", Name: "_", Version: "3", Payload: []byte(`{"host":"_"}`)})
	check("with a part")
	startControl(t, g)
	wantEcho(t, g.Get("control.test", "/"), "control")
	g.Get("other.test", "/").WantStatus(t, 404)
}
