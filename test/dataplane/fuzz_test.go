package dataplane_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// FuzzFrame sends anything to the data plane, once as it is and once behind a
// first line that fits it. A worker always answers that it takes it
// or why not, lives on, and serves.
func FuzzFrame(f *testing.F) {
	for _, frame := range badFrames() {
		_, entries, _ := strings.Cut(frame, "\n")
		f.Add([]byte(frame), 1)
		f.Add([]byte(entries), strings.Count(entries, "put ")+strings.Count(entries, "del "))
	}
	for _, entry := range []string{
		put("host", "a.test", `{"routes":[{"prefix":"/"}]}`), put("name", "control.test", "null"), put("certificate", "x", "[]"),
		put("globals", "globals", `{"policies":[["x"]]}`), part("host", "1/2", "a.test", "{"), "del globals 7\nglobals", "del host 12\ncontrol.test",
	} {
		f.Add([]byte(entry), 1)
	}
	g := headgatetest.StartBare(f, headgatetest.Options{Workers: 1})
	units := startControl(f, g)
	calls := newAPI(f, g).client
	before, err := g.Client.State(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte, count int) {
		a := api{t, calls}
		ask := func() (headgatetest.Response, error) {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			return g.Try(client, headgatetest.Request{Host: "control.test"})
		}
		for _, frame := range []string{string(content), framed(1, 1, count, string(content))} {
			status, text := a.ask("POST", "/v1/apply", strings.NewReader(frame))
			if status != 200 && (status < 400 || status > 499) && status != 507 {
				t.Errorf("%d %s", status, text)
			}
			// What was taken may be the host's end. It must not be the worker's.
			if _, err := ask(); err != nil {
				t.Errorf("after %d %s: %v", status, text, err)
			}
		}
		if _, err := g.Client.Push(t.Context(), 1, 1, units); err != nil {
			t.Fatal(err)
		}
		r, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, r, "control")
		now, err := g.Client.State(t.Context())
		if err != nil || now.PID != before.PID {
			t.Errorf("the worker %d is gone, %d answers (%v)", before.PID, now.PID, err)
		}
	})
}
