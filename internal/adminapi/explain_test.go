package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
)

// TestExplain: the parameters make the query, and mistakes in it have a status
// of their own.
func TestExplain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	var asked explain.Query
	stop, err := Start(socket, Answers{Explain: func(ctx context.Context, q explain.Query) (report.Explanation, error) {
		asked = q
		switch q.URL {
		case "wrong":
			_, err := explain.Explain(explain.Query{URL: "ftp://a.test/"}, explain.Settings{})
			return report.Explanation{}, err
		case "busy":
			return report.Explanation{}, errors.New("wait for the controller")
		}
		return report.Explanation{Request: report.Request{URL: q.URL}}, nil
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range []struct {
		query  string
		status int
		want   explain.Query
	}{
		{"?url=http://a.test/x%3Fy", 200, explain.Query{URL: "http://a.test/x?y"}},
		{"?url=a&method=POST&from=::1&header=A:+1&header=B:+2", 200, explain.Query{URL: "a", Method: "POST", From: "::1", Headers: []string{"A: 1", "B: 2"}}},
		{"?url=wrong", 400, explain.Query{URL: "wrong"}},
		{"?url=busy", 503, explain.Query{URL: "busy"}},
		{"", 400, explain.Query{}},
		{"?url=", 400, explain.Query{}},
		{"?url=a&url=b", 400, explain.Query{}},
		{"?url=a&uri=b", 400, explain.Query{}},
	} {
		asked = explain.Query{}
		response, text := ask(t, socket, "GET", "/v1/explain"+c.query)
		if response.StatusCode != c.status {
			t.Errorf("%s: %s, want %d: %s", c.query, response.Status, c.status, text)
		}
		if diff := cmp.Diff(c.want, asked); diff != "" {
			t.Errorf("%s: %s", c.query, diff)
		}
		var got struct {
			report.Explanation
			Error string
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || (got.Error == "") != (c.status == 200) || c.status == 200 && got.Request.URL != c.want.URL {
			t.Errorf("%s: %v: %s", c.query, err, text)
		}
	}
	if response, _ := ask(t, socket, "POST", "/v1/explain?url=a"); response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s", response.Status)
	}
}
