package build

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// maxNamed is how many unhealthy endpoints a finding names.
const maxNamed = 3

// check says which endpoints are to be checked, and leaves out those that are known to be
// unhealthy, unless all are.
func (t *backendMaker) check() {
	check := t.backend.Check
	if check == (model.HealthCheck{}) || len(t.backend.Endpoints) == 0 {
		return
	}
	t.backend.Health.Checked = t.checkable(check.Port)
	known := t.view.Health(t.backend.Key)
	if known == nil || len(known.Unhealthy) == 0 {
		return
	}
	failing := make(map[netip.AddrPort]string, len(known.Unhealthy))
	for _, u := range known.Unhealthy {
		failing[u.Address] = u.Why
	}
	all := t.backend.Endpoints
	healthy := make([]netip.AddrPort, 0, len(all))
	var unhealthy []model.UnhealthyEndpoint
	for _, at := range all {
		if why, ok := failing[at]; ok {
			unhealthy = append(unhealthy, model.UnhealthyEndpoint{Address: at, Why: why})
		} else {
			healthy = append(healthy, at)
		}
	}
	if len(unhealthy) == 0 {
		return
	}
	t.backend.Health.Unhealthy = unhealthy
	backend := strings.TrimSuffix(t.backend.Key, "/")
	effect := "requests to backend " + backend + " are sent to the other endpoints"
	if len(healthy) == 0 {
		effect = "requests to backend " + backend + " are sent to all of them, since no endpoint is healthy"
	} else {
		t.backend.Endpoints = healthy
	}
	t.report("metadata.name", finding.Unhealthy, unhealthyText(unhealthy, len(all)), effect)
}

// checkable are the endpoints whose checks, at that port if it is not 0, may be made.
func (t *backendMaker) checkable(port uint16) []netip.AddrPort {
	if port == 0 {
		return t.backend.Endpoints
	}
	may := allowed(t.view)
	return slices.DeleteFunc(slices.Clone(t.backend.Endpoints), func(at netip.AddrPort) bool {
		return !may(netip.AddrPortFrom(at.Addr(), port))
	})
}

// unhealthyText names some of the endpoints.
func unhealthyText(list []model.UnhealthyEndpoint, all int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d endpoints fail the health check", len(list), all)
	for i, u := range list[:min(len(list), maxNamed)] {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&text, "%s%s (%s)", separator, u.Address, u.Why)
	}
	if more := len(list) - maxNamed; more > 0 {
		fmt.Fprintf(&text, "; and %d more", more)
	}
	return text.String()
}
