package controller

import (
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// trafficPlan says how workers count requests.
func trafficPlan(s traffic.Settings) *nginxconf.Traffic {
	length, size := s.Buckets.Bytes()
	return &nginxconf.Traffic{
		Time: s.Buckets.Milliseconds(), Length: length, Size: size,
		PerHost: s.PerHost, AnyHost: s.AnyHost, StatusClasses: s.StatusClasses, Schema: s.Schema, Excluded: s.Uncounted(),
	}
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
