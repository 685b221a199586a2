package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/unit"
)

// TestUnits: names of one kind, and mistakes have a status of their own.
func TestUnits(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := Start(socket, Answers{Units: func(_ context.Context, kind unit.Kind) ([]string, error) {
		switch kind {
		case unit.Host:
			return []string{"a.test", "b.test"}, nil
		case unit.Backend:
			return []string{}, nil
		}
		return nil, errors.New("wait for the controller")
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range []struct {
		query  string
		status int
		want   []string
	}{
		{"?kind=host", 200, []string{"a.test", "b.test"}},
		{"?kind=backend", 200, []string{}},
		{"?kind=name", 503, nil},
		{"", 400, nil},
		{"?kind=stream", 400, nil}, // not pushed
		{"?kind=hosts", 400, nil},
		{"?kind=host&kind=name", 400, nil},
		{"?kind=host&name=a", 400, nil},
	} {
		response, text := ask(t, socket, "GET", "/v1/units"+c.query)
		var got struct {
			Names []string
			Error string
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != c.status || (got.Error == "") != (c.status == 200) {
			t.Errorf("%s: %s, want %d: %v: %s", c.query, response.Status, c.status, err, text)
		}
		if diff := cmp.Diff(c.want, got.Names); diff != "" {
			t.Errorf("%s: %s", c.query, diff)
		}
	}
}
