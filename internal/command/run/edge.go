package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/command/run/upstream"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/follower"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
)

// runEdge serves what a control publishes until ctx ends, then shuts down.
func (o program) runEdge(ctx context.Context, log *slog.Logger) error {
	outliveReaders()
	if err := nginx.CloseMemory(); err != nil {
		return err
	}
	m := metrics.New()
	findings := tracker.New(log, m.Findings)
	m.Registry.MustRegister(droppedLines(o.log))
	here, err := o.machine(ctx, log)
	if err != nil {
		return err
	}
	defer here.close()
	r := newReplica()
	settings := edge.Settings{
		Features: all.Features(), Environment: here.env, Process: here.process, RunDir: here.dir,
		Metrics: m, Families: o.families(m.Registry, r), Tracker: findings, Log: log, Timing: o.timing,
	}
	facing := o.face(&settings)
	databases := o.followGeoDatabases(here.dir, log)
	f := follower.New(settings, databases.Subscribe)
	m.Registry.MustRegister(gauge("headgate_synced", "1 if all that was received from the control is applied, 0 while that is going on.", f.Synced))
	u, err := o.upstream(f, log)
	if err != nil {
		return err
	}
	defer u.Close()
	u.Reporter = o.reporter(f, u, here, findings, settings.Traffic)
	m.Registry.MustRegister(connectedGauge(u.Connected))
	ports, closePorts, err := o.listen(u.Check, m.Registry, settings.Traffic, log)
	if err != nil {
		return err
	}
	defer closePorts()
	_, stopAPI, err := o.startAPI(here.dir.ControllerSocket(), adminapi.Answers{Findings: findings.All, Codes: findings.Codes, Explain: explainNothing, Units: f.AppliedNames}, log)
	if err != nil {
		return err
	}
	defer stopAPI()
	stopExchange, err := o.startLimitStore(here.dir.Socket(), m.Registry, log)
	if err != nil {
		return err
	}
	defer stopExchange()
	return o.serve(ctx, service{
		half: f, run: func(ctx context.Context) error { return u.Run(ctx, databases.Run) },
		listeners: ports, replica: r, facing: facing, stopAPI: stopAPI,
	}, log)
}

func connectedGauge(connected func() bool) prometheus.Collector {
	return gauge("headgate_control_connected", "In an edge, 1 while the control is connected, 0 otherwise: what it published last is served then.", connected)
}

// reporter says what the control is to know of this edge.
func (o program) reporter(f *follower.Follower, u *upstream.Upstream, here *machine, findings *tracker.Tracker, requests *traffic.Table) *reports.Reporter {
	socket, began := here.dir.Socket(), time.Now()
	r := &reports.Reporter{
		Interval: reports.Interval,
		Status: func(ctx context.Context) reports.Status {
			s := reports.Status{
				Name: o.Edge.Name(), Release: o.build.Version, NGINX: here.process.Capabilities().Version, Started: began,
				Synced: f.Synced(), Findings: finding.WorstFirst(findings.All()),
			}
			ctx, cancel := context.WithTimeout(ctx, edgeTimeout)
			defer cancel()
			if err := u.Check(ctx); err != nil {
				s.Problem = err.Error()
			}
			s.Serving = s.Problem == ""
			return s
		},
		Holdings: func(ctx context.Context, units []unit.Key) ([]dataplane.Holding, error) {
			return dataplane.Holdings(ctx, socket, units)
		},
	}
	if requests != nil {
		r.Requests = requests.HostRequests
	}
	return r
}

// explainNothing refuses: an edge does not know why units are as they are.
func explainNothing(context.Context, explain.Query) (report.Explanation, error) {
	return report.Explanation{}, errors.New("this is an edge, which does not know where its units come from: ask the control")
}

// upstream makes what follows the control.
func (o program) upstream(f *follower.Follower, log *slog.Logger) (*upstream.Upstream, error) {
	return upstream.New(upstream.Settings{
		Follower: f, Name: o.Edge.Name(), StateDir: o.StateDir, Log: log,
		Control: link.ClientSettings{
			Address: o.ControlAddress, CAFile: o.ControlCA, TokenFile: o.ControlToken,
			CertificateFile: o.ControlCertificate, KeyFile: o.ControlKey, Log: log,
		},
	})
}
