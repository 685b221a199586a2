package edge

import (
	"context"
	"sync"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// fetchReports fetches what workers report of requests until ctx ends. wait waits until that is
// over.
func (e *Edge) fetchReports(ctx context.Context) (wait func()) {
	var fetching sync.WaitGroup
	if t := e.settings.Traffic; t != nil {
		fetching.Go(func() { t.Run(ctx, e.client.Traffic) })
	}
	if t := e.settings.Tracing; t != nil {
		fetching.Go(func() { t.Run(ctx, e.client.Spans) })
	}
	return fetching.Wait
}

// trafficPlan says how workers count requests.
func trafficPlan(s traffic.Settings) *nginxconf.Traffic {
	length, size := s.Buckets.Bytes()
	return &nginxconf.Traffic{
		Time: s.Buckets.Milliseconds(), Length: length, Size: size,
		PerHost: s.PerHost, AnyHost: s.AnyHost, StatusClasses: s.StatusClasses, Schema: s.Schema, Excluded: s.Uncounted(),
	}
}

// setTraffic says what requests can be counted for from now on.
func (e *Edge) setTraffic(built unit.Built) {
	table := e.settings.Traffic
	if table == nil {
		return
	}
	switch built.Kind {
	case unit.Host:
		if h, found := built.Model.(model.Host); found {
			table.SetHost(built.Name, &h)
		} else {
			table.SetHost(built.Name, nil)
		}
	case unit.Name:
		name, _ := built.Model.(model.Name)
		table.SetName(built.Name, name.Host)
	}
}

// configureTracing says how spans are exported from now on.
func (e *Edge) configureTracing(t model.Tracing) {
	if e.settings.Tracing != nil {
		e.settings.Tracing.Configure(t)
	}
}
