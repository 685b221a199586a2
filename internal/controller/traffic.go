package controller

import (
	"context"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/traffic"
	"github.com/headgate/headgate/internal/unit"
)

// trafficPlan says how workers count requests.
func trafficPlan(s traffic.Settings) *plan.Traffic {
	length, size := s.Buckets.Bytes()
	return &plan.Traffic{
		Time: s.Buckets.Milliseconds(), Length: length, Size: size,
		PerHost: s.PerHost, AnyHost: s.AnyHost, StatusClasses: s.StatusClasses, Schema: s.Schema, Excluded: s.Uncounted(),
	}
}

// fetchTraffic fetches counts of requests until ctx ends. What it returns is closed then.
func (c *Controller) fetchTraffic(ctx context.Context) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.settings.Traffic != nil {
			c.settings.Traffic.Run(ctx, c.client.Traffic)
		}
	}()
	return done
}

// setTraffic says what requests can be counted for from now on.
func (c *Controller) setTraffic(built unit.Built) {
	table := c.settings.Traffic
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
