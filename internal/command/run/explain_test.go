package run

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/explain/text"
	"github.com/headgate/headgate/internal/unit"
)

// TestEjectedEndpointsAreExplained: those of the route's own backends, by worker.
func TestEjectedEndpointsAreExplained(t *testing.T) {
	units := []report.Unit{{Kind: string(unit.Host), Name: "shop.test", Version: "1"}, {Kind: string(unit.Backend), Name: "shop/web/80", Version: "2"}}
	holding := dataplane.Holding{Units: make([]dataplane.Unit, len(units)), State: dataplane.State{PID: 7, Generation: 1, Ejected: []dataplane.Ejected{
		{Backend: "shop/web/80", Endpoint: "10.0.0.1:80", Reason: "connect", Until: 3723, Avoided: true},
		{Backend: "other/web/80", Endpoint: "10.0.0.2:80", Reason: "connect", Until: 3723, Avoided: true},
		{Backend: "shop/web/80", Endpoint: "10.0.0.3:80", Reason: "failures", Until: 7384},
	}}}
	e := report.Explanation{DataPlane: &report.DataPlane{Generation: 1, Loaded: true, Workers: []report.Worker{worker(holding, units)}}}
	var page strings.Builder
	if err := text.Write(&page, &e, false); err != nil {
		t.Fatal(err)
	}
	// Lines are broken where they are long.
	printed := strings.Join(strings.Fields(page.String()), " ")
	for _, want := range []string{
		"endpoint 10.0.0.1:80 of backend shop/web/80 is ejected: no connection can be made; the next probe is at 01:02:03 UTC",
		"endpoint 10.0.0.3:80 of backend shop/web/80 is ejected: requests failed in a row; it is back at 02:03:04 UTC; it gets requests, since too many endpoints are ejected",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("missing %q in\n%s", want, page.String())
		}
	}
	if strings.Contains(printed, "10.0.0.2") {
		t.Errorf("an endpoint of another backend:\n%s", page.String())
	}
}
