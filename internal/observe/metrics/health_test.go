package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/source/check"
)

// TestHealth: a Service has its own series while it is checked. The number of series is bounded,
// and none with an unhealthy endpoint is left out.
func TestHealth(t *testing.T) {
	state := check.State{Succeeded: 7, Failed: 3, Services: []check.ServiceState{{Namespace: "shop", Service: "web", Checked: 3, Unhealthy: 1}}}
	collector := metrics.Health(func() check.State { return state })
	want := `# HELP headgate_health_checks_total Number of health checks of endpoints, by result: success or failure.
# TYPE headgate_health_checks_total counter
headgate_health_checks_total{result="failure"} 3
headgate_health_checks_total{result="success"} 7
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want), "headgate_health_checks_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(collector, "headgate_unhealthy_endpoints"); n != 1 {
		t.Errorf("%d series for one Service", n)
	}
	for i := range 2000 {
		state.Services = append(state.Services, check.ServiceState{Namespace: "shop", Service: fmt.Sprint(i), Checked: 2, Unhealthy: i / 1999})
	}
	if n := testutil.CollectAndCount(collector, "headgate_checked_endpoints"); n != 1001 {
		t.Errorf("%d series", n)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values[family.GetName()+" "+m.GetLabel()[len(m.GetLabel())-1].GetValue()] = m.GetGauge().GetValue()
		}
	}
	for series, want := range map[string]float64{
		"headgate_unhealthy_endpoints web": 1, "headgate_unhealthy_endpoints 1999": 1, "headgate_unhealthy_endpoints _others": 0, "headgate_checked_endpoints _others": 2002,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if len(state.Services) != 2001 || state.Services[0].Service != "web" {
		t.Error("the state was changed")
	}
}
