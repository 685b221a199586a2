package opentelemetry_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The access log names the trace of a request, if its format says so.
func TestLog(t *testing.T) {
	t.Parallel()
	const format = "log-format-upstream: $http_user_agent/$opentelemetry_trace_id/$opentelemetry_span_id/$opentelemetry_context_traceparent"
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{
		AccessLog: file, Timing: headgatetest.Hasty(),
		Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") +
			headgatetest.Ingress("moved", "a.test", "/moved", "a", "permanent-redirect: https://x.test/") +
			headgatetest.Ingress("errors", "a.test", "/large", "a", "proxy-body-size: 3m") +
			headgatetest.Ingress("untraced", "off.test", "/", "a", "enable-opentelemetry: false") + headgatetest.Config(on, collector, format),
	})
	s := spansOf(t, g)
	last := 0
	// ask returns what the log and the backend have of a request.
	ask := func(host, path, sent string) (fields []string, backend string) {
		t.Helper()
		last++
		mark := fmt.Sprintf("mark-%d", last)
		header := http.Header{"User-Agent": {mark}}
		if sent != "" {
			header.Set("Traceparent", sent)
		}
		if r := g.Do(headgatetest.Request{Host: host, Path: path, Header: header}); r.Echo != nil {
			backend = r.Echo.Header.Get("Traceparent")
		}
		headgatetest.Eventually(t, "the line of the request", func() bool {
			text, err := os.ReadFile(file)
			if err != nil {
				return false
			}
			for line := range strings.Lines(string(text)) {
				if rest, found := strings.CutPrefix(line, mark+"/"); found && strings.HasSuffix(line, "\n") {
					fields = strings.Split(strings.TrimSpace(rest), "/")
				}
			}
			return fields != nil
		})
		return fields, backend
	}
	none := func(host, path, sent string) {
		t.Helper()
		if got, _ := ask(host, path, sent); strings.Join(got, "/") != "//" {
			t.Errorf("%s: the log has %q of a request without a trace", host, got)
		}
	}
	for _, path := range []string{"/", "/large", "/moved"} {
		for _, sent := range []string{"", sampled} {
			got, backend := ask("a.test", path, sent)
			list := s.of(got[0], map[string]int{"/": 2, "/large": 2, "/moved": 1}[path])
			s.list = nil
			if sent != "" && got[0] != clients || got[1] != list[0].ID || backend != "" && got[2] != backend || !strings.HasPrefix(got[2], "00-"+got[0]+"-") {
				t.Errorf("%s with %q: the log has %q, the backend %q; spans %+v", path, sent, got, backend, list)
			}
		}
	}
	if got, backend := ask("a.test", "/", unsampled); got[0] != clients || got[1] != "" || got[2] != backend {
		t.Errorf("of a request that is not sampled, the log has %q and the backend %q", got, backend)
	}
	none("off.test", "/", sampled)
	g.Apply(headgatetest.Config(on, collector, format, "otel-sampler: AlwaysOff"))
	if got, backend := ask("a.test", "/", ""); len(got[0]) != 32 || got[1] != "" || got[2] != backend || !strings.HasSuffix(backend, "-00") {
		t.Errorf("of a request that is not sampled, the log has %q and the backend %q", got, backend)
	}
	// Without a collector nothing sets them.
	g.ApplyReloading(headgatetest.Config(format))
	none("a.test", "/", sampled)
}
