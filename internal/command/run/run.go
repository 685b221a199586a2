package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/command/run/edges"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/health"
	"github.com/headgate/headgate/internal/observe/linequeue"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// run serves until ctx ends, then shuts down.
func (o program) run(ctx context.Context, log *slog.Logger) error {
	outliveReaders()
	if err := errors.Join(nginx.CloseMemory(), findPatterns(log)); err != nil {
		return err
	}
	m := metrics.New()
	findings := tracker.New(log, m.Findings)
	certificates := expiry.New(o.Objects.ControllerClass, findings.Update)
	m.Registry.MustRegister(certificates, droppedLines(o.log))
	from, err := o.source(findings, m, log)
	if err != nil {
		return err
	}
	here, err := o.machine(ctx, log)
	if err != nil {
		return err
	}
	defer here.close()
	databases := o.followGeoDatabases(here.dir, log)
	from.run, from.want.GeoDatabases = controller.MergeSources(from.run, databases.Run), databases.Subscribe
	r, err := o.replica(from, log)
	if err != nil {
		return err
	}
	families := o.families(m.Registry, r)
	kept, changes := o.keep()
	settings := o.settings(from, here, r, certificates, edge.Settings{Metrics: m, Families: families, Tracker: findings, History: changes, Log: log})
	settings.Overview = kept
	serves := service{replica: r}
	workers := workersHere(here.dir.Socket())
	var requests func() map[string]reports.Counts
	if o.IsControl() {
		if serves.edges, err = edges.Listen(o.EdgeAddress, o.trust(ctx, from, log), o.unknownGroup(), m.Registry); err != nil {
			return fmt.Errorf("--edge-address: %w", err)
		}
		from.run = serves.edges.Follow(from.run)
		settings.Publisher = serves.edges.Publisher
		workers, requests = serves.edges.Ask, serves.edges.Requests
	} else {
		serves.facing = o.face(&settings.Settings)
		if settings.Traffic != nil {
			requests = settings.Traffic.HostRequests
		}
	}
	c := controller.New(settings)
	registerGauges(m.Registry, c, r)
	ports, closePorts, err := o.listen(c.Check, m.Registry, settings.Traffic, log)
	if err != nil {
		return err
	}
	defer closePorts()
	w, err := o.startWebhook(&from, here.process, m, families, log)
	if err != nil {
		return err
	}
	defer w.close()
	asked := answerer{c.Inspect, explainSettings(here.env, from.files), workers}
	shown := o.overview(c, workers, here.process.Capabilities().Version, kept, changes, requests)
	answers := adminapi.Answers{Findings: findings.All, Codes: findings.Codes, Explain: asked.explain, Units: asked.units, Overview: shown}
	if serves.edges != nil {
		answers.Edges = serves.edges.List
		ports = append(ports, serves.edges)
	}
	page, stopAPI, err := o.startAPI(here.dir.ControllerSocket(), answers, log)
	if err != nil {
		return err
	}
	defer stopAPI()
	if !o.IsControl() {
		stopExchange, err := o.startLimitStore(here.dir.Socket(), m.Registry, log)
		if err != nil {
			return err
		}
		defer stopExchange()
	}
	go certificates.Run(ctx)
	serves.half, serves.run = c, func(ctx context.Context) error { return c.Run(ctx, from.run) }
	serves.listeners, serves.stopAPI = append(ports, w, page), stopAPI
	return o.serve(ctx, serves, log)
}

// settings are those of the controller. The half with NGINX has what is given already.
func (o program) settings(from from, here *machine, r *replica, certificates *expiry.Watch, half edge.Settings) controller.Settings {
	half.Features, half.Environment, half.Process, half.RunDir = all.Features(), here.env, here.process, here.dir
	half.Timing, half.Reloaded = o.timing, from.reloaded
	return controller.Settings{
		Settings: half, Store: from.objects, AnnotationPrefix: o.AnnotationsPrefix, Expiry: certificates,
		Subscriptions: from.want, Selected: r.selected, Served: from.served,
	}
}

func explainSettings(env nginxconf.Environment, files func(object string) []string) explain.Settings {
	return explain.Settings{Features: all.Features(), Files: files, HealthPath: env.HealthPath.String(), HTTPSPort: uint16(env.HTTPSPort)}
}

// registerGauges registers what the controller and the replica say of themselves.
func registerGauges(registry *prometheus.Registry, c *controller.Controller, r *replica) {
	registry.MustRegister(
		gauge("headgate_synced", "1 if all changes that were received are applied, 0 while that is going on. Hosts that wait for a reload which is held back (headgate_waiting_hosts), or because they take long to build (headgate_hosts_to_build), count as applied.", c.Applied),
		gauge("headgate_leader", "1 if this replica is the leader, 0 if not.", r.leads),
	)
}

// findPatterns looks for the library of regular expressions: without it, each pattern would be
// reported as invalid.
func findPatterns(log *slog.Logger) error {
	library, err := pcre.Version()
	if err != nil {
		return err
	}
	log.Debug("patterns", "pcre2", library)
	return nil
}

// listen opens the ports of the health check and of profiles. They are served when NGINX
// is started, and closed by the function.
func (o program) listen(check func(context.Context) error, registry *prometheus.Registry, table *traffic.Table, log *slog.Logger) (ports []listener, closeAll func(), err error) {
	var requests health.Requests
	if table != nil {
		requests = table
	}
	server, err := health.Listen(net.JoinHostPort(o.HealthzHost, strconv.Itoa(int(o.HealthzPort))), o.HealthCheckPath, seconds(o.HealthCheckTimeout), check, registry, requests, log)
	if err != nil {
		return nil, nil, err
	}
	profiles, err := o.startProfiler(log)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return []listener{server, profiles}, func() {
		// There is nothing to do about a port that can't be closed.
		_, _ = server.Close(), profiles.Close()
	}, nil
}

// droppedLines counts the lines of the log that found no room.
func droppedLines(queue *linequeue.Writer) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "headgate_log_lines_dropped_total", Help: "Number of lines of the log that were dropped, since standard error was not read.",
	}, func() float64 { return float64(queue.Dropped()) })
}

// gauge is a metric that is 1 while something is true, 0 otherwise.
func gauge(name, help string, is func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		if is() {
			return 1
		}
		return 0
	})
}
