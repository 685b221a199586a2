package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/finding"
)

var (
	one   = finding.Finding{Object: "ingress/default/a", Field: "spec", Code: finding.Conflict, Message: "<lost>", Effect: "not served"}
	two   = finding.Finding{Object: "ingress/default/a", Field: "x", Code: finding.InvalidValue, Message: "bad", Effect: "none"}
	three = finding.Finding{Object: "ingress/shop/a", Field: "x", Code: finding.InvalidValue, Message: "bad", Effect: "none"}
)

func serve(t *testing.T, socket string, findings ...finding.Finding) {
	t.Helper()
	stop, err := Start(socket, Answers{Findings: func() []finding.Finding { return findings }}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopped(t, socket, stop) })
}

func stopped(t *testing.T, socket string, stop func()) {
	t.Helper()
	stop()
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func ask(t *testing.T, socket, method, path string) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://controller"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestFindings(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	serve(t, socket, one, two, three)
	for query, want := range map[string][]finding.Finding{
		"":                                     {one, two, three},
		"?object=ingress/default/a":            {one, two},
		"?object=ingress%2Fshop%2Fa":           {three},
		"?code=InvalidValue":                   {two, three},
		"?code=InvalidValue&code=Conflict":     {one, two, three},
		"?code=Conflict&object=ingress/shop/a": {},
		"?object=":                             {},
	} {
		response, text := ask(t, socket, "GET", "/v1/findings"+query)
		var got struct{ Findings []finding.Finding }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Findings); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
		if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "application/json" {
			t.Errorf("%s: %d %s", query, response.StatusCode, kind)
		}
	}
}

func TestForm(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	serve(t, socket, one)
	const want = `{
  "findings": [
    {
      "object": "ingress/default/a",
      "field": "spec",
      "code": "Conflict",
      "message": "<lost>",
      "effect": "not served"
    }
  ]
}
`
	if _, text := ask(t, socket, "GET", "/v1/findings"); text != want {
		t.Error(text)
	}
	if response, text := ask(t, socket, "HEAD", "/v1/findings"); response.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %s", response.StatusCode, text)
	}
}

func TestRefusals(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	serve(t, socket)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 404},
		{"GET", "/v1", 404},
		{"GET", "/v1/findings/", 404},
		{"GET", "/v1/findings/x", 404},
		{"POST", "/v2", 404},
		{"POST", "/v1/findings", 405},
		{"DELETE", "/v1/findings?object=x", 405},
		{"GET", "/v1/findings?objekt=x", 400},
	} {
		response, text := ask(t, socket, c.method, c.path)
		var got struct{ Error string }
		if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != c.status || got.Error == "" {
			t.Errorf("%s %s: %d %s, want %d with an error", c.method, c.path, response.StatusCode, text, c.status)
		}
		if allow := response.Header.Get("Allow"); (c.status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s %s: Allow: %s", c.method, c.path, allow)
		}
	}
}

// A killed controller leaves its socket without a listener.
func TestOldSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	serve(t, socket, one)
	if response, _ := ask(t, socket, "GET", "/v1/findings"); response.StatusCode != 200 {
		t.Error(response.Status)
	}
}

// TestStopAtOnce: a server that is stopped before it serves removes its socket too.
func TestStopAtOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := Start(socket, Answers{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, socket, stop)
}
