package dataplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// checkMetrics: requests are counted with --enable-metrics alone.
func checkMetrics(t *testing.T, binary string) {
	manifests := headgatetest.Service("one") + headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one")
	const family = "nginx_ingress_controller_request"
	for _, flags := range [][]string{{"--time-buckets=0.1,1"}, {"--enable-metrics", "--time-buckets=0.1,1", "--exclude-socket-metrics=request_size"}} {
		p := startProgram(t, binary, manifests, flags...)
		p.open(true)
		headgatetest.Eventually(t, "the program serves", func() bool {
			response, err := p.ask("a.test", "/")
			if err != nil {
				return false
			}
			response.Body.Close()
			return response.StatusCode == http.StatusOK
		})
		if len(flags) == 1 {
			if text := p.metrics(); strings.Contains(text, family) || strings.Contains(text, "headgate_uncounted") || !strings.Contains(text, "go_goroutines") {
				t.Errorf("metrics without --enable-metrics:\n%s", text)
			}
			continue
		}
		headgatetest.Eventually(t, "the request is counted", func() bool {
			return strings.Contains(p.metrics(), family+"s{")
		})
		text := p.metrics()
		for _, want := range []string{`controller_class="k8s.io/ingress-nginx"`, family + `_duration_seconds_bucket{`, `le="0.1"`, `path="/",service="one",status="200"`} {
			if !strings.Contains(text, want) {
				t.Errorf("the metrics lack %s", want)
			}
		}
		if strings.Contains(text, family+"_size") || strings.Contains(text, `le="0.005"`) {
			t.Error("the flags have no effect")
		}
	}
}
