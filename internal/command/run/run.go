package run

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/plan/nginxconf"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/health"
	"github.com/headgate/headgate/internal/observe/linequeue"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracing"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/lua"
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
	accessLog, err := nginx.OpenAccessLog(os.Stdout)
	if err != nil {
		return err
	}
	defer accessLog.Close()
	process, dir, env, err := o.prepare(ctx, accessLog, log)
	if err != nil {
		return err
	}
	defer dir.Close()
	databases := o.followGeoDatabases(dir, log)
	from.run, from.want.GeoDatabases = controller.MergeSources(from.run, databases.Run), databases.Subscribe
	r, err := o.replica(from, log)
	if err != nil {
		return err
	}
	tcpAndUDP := o.tcpAndUDP(m, findings, dir.HandedSocket(), log)
	table, families := o.traffic(m, findings, log), o.families(m.Registry, r)
	kept, changes := o.keep()
	spans := o.newSpans(m, log)
	c := controller.New(controller.Settings{
		Settings: edge.Settings{
			Features: all.Features(), Environment: env, Process: process, RunDir: dir,
			Metrics: m, Families: families, Tracker: findings, History: changes, Log: log,
			Timing: o.timing, Reloaded: from.reloaded,
			Streams: tcpAndUDP, Passthrough: tcpAndUDP.tls.controlled(), Traffic: table, Tracing: spans,
		},
		Store:            from.objects,
		AnnotationPrefix: o.AnnotationsPrefix,
		Expiry:           certificates,
		Subscriptions:    from.want,
		Selected:         r.selected,
		Served:           from.served,
		Overview:         kept,
	})
	registerGauges(m.Registry, c, r)
	ports, closePorts, err := o.listen(c, m.Registry, table, log)
	if err != nil {
		return err
	}
	defer closePorts()
	w, err := o.startWebhook(&from, process, m, families, log)
	if err != nil {
		return err
	}
	defer w.close()
	asked := answerer{c.Inspect, explainSettings(env, from.files), dir.Socket()}
	shown := o.overview(c, asked.socket, process.Capabilities().Version, kept, changes, table)
	page, stopAPI, err := o.startAPI(dir.ControllerSocket(), adminapi.Answers{Findings: findings.All, Codes: findings.Codes, Explain: asked.explain, Units: asked.units, Overview: shown}, log)
	if err != nil {
		return err
	}
	defer stopAPI()
	stopExchange, err := o.startLimitStore(dir.Socket(), m.Registry, log)
	if err != nil {
		return err
	}
	defer stopExchange()
	go certificates.Run(ctx)
	return o.serve(ctx, c, process, append(ports, w, page), from.run, r, tcpAndUDP, spans, stopAPI, log)
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
func (o program) listen(c *controller.Controller, registry *prometheus.Registry, table *traffic.Table, log *slog.Logger) (ports []listener, closeAll func(), err error) {
	var requests health.Requests
	if table != nil {
		requests = table
	}
	server, err := health.Listen(net.JoinHostPort(o.HealthzHost, strconv.Itoa(int(o.HealthzPort))), o.HealthCheckPath, seconds(o.HealthCheckTimeout), c.Check, registry, requests, log)
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

// A listener serves a port until it is closed.
type listener interface{ Serve() error }

// serve runs until ctx ends, then shuts down: health checks fail and clients are
// asked to close connections, changes are applied throughout the grace period, and
// NGINX finishes its requests while the leader does its last work.
func (o program) serve(ctx context.Context, c *controller.Controller, process *nginx.Process, listeners []listener, from controller.Source, r *replica, tcpAndUDP streams, spans *tracing.Exporter, stopAPI func(), log *slog.Logger) error {
	running, end := context.WithCancelCause(context.Background())
	defer end(nil)
	forceStop, stop := secondSignal()
	defer stop()
	for _, l := range listeners {
		go func() {
			if err := l.Serve(); err != nil {
				end(err)
			}
		}()
	}
	go func() {
		select {
		case <-c.Serving():
			log.Info("serving", "http", o.HTTPPort, "https", o.HTTPSPort, "healthz", o.HealthzPort)
		case <-running.Done():
		}
	}()
	go func() {
		<-ctx.Done()
		log.Info("shutting down")
		c.Leave(forceStop, seconds(o.ShutdownGracePeriod))
		end(nil)
	}()
	if o.ManifestsDir == "" {
		limitGarbage()
	}
	go releaseMemory(running, c.Serving(), afterLoad)
	r.run(c.Serving())
	err := c.Run(running, from)
	if cause := context.Cause(running); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil {
		// It failed without a signal to stop. It is restarted soon, with the same
		// addresses.
		r.end()
		c.Leave(forceStop, 0)
	}
	limit, cancel := context.WithTimeout(forceStop, c.ShutdownTimeout()+stopMargin)
	defer cancel()
	left, closed := r.leave(limit), tcpAndUDP.leave(forceStop, c.ShutdownTimeout())
	err = errors.Join(err, stopNGINX(forceStop, process, c.ShutdownTimeout(), log))
	<-left
	<-closed
	spans.Flush(limit)
	// wait-shutdown waits for this.
	stopAPI()
	if err != nil {
		return err
	}
	pause(forceStop, seconds(o.PostShutdownGracePeriod))
	return nil
}

// prepare checks the machine and prepares NGINX for its start.
func (o program) prepare(ctx context.Context, accessLog *nginx.AccessLog, log *slog.Logger) (process *nginx.Process, dir *rundir.Dir, env nginxconf.Environment, err error) {
	var threads []string
	for _, pool := range feature.Resources(all.Features()).Threads {
		threads = append(threads, pool.Name.String())
	}
	capabilities, err := nginx.Discover(ctx, threads...)
	if err != nil {
		return nil, nil, env, err
	}
	capabilities.Has = slices.Concat(capabilities.Has, o.limitStoreCapability(), collectorCapability())
	path, err := o.makeRunDirectory()
	if err != nil {
		return nil, nil, env, err
	}
	dir, err = rundir.Open(path)
	if err != nil {
		return nil, nil, env, err
	}
	// In the image, /etc/nginx/nginx.conf is a link to this name.
	if name := os.Getenv("HEADGATE_NGINX_CONF_LINK"); name != "" {
		if err := dir.LinkConf(name); err != nil {
			log.Warn("the configuration is only in the run directory", "directory", dir.Path(), "error", err)
		}
	}
	modules, err := lua.Files(all.Features())
	if err != nil {
		return nil, nil, env, err
	}
	if err := dir.WriteLua(modules); err != nil {
		return nil, nil, env, err
	}
	env, err = o.environment(capabilities, dir, accessLog)
	if err != nil {
		return nil, nil, env, err
	}
	process = nginx.New(nginx.Options{
		Capabilities: capabilities, Dir: dir, AccessLog: accessLog, Flags: option.FlagsOf(o.Listening()), Log: log,
	})
	log.Info("starting", "release", o.build.Version, "commit", o.build.Commit(), "nginx", process.Capabilities().Version)
	return process, dir, env, nginx.CheckPorts([]netip.AddrPort{o.HealthAddress()}, option.FlagsOf(o.Listening()))
}

func (o program) environment(capabilities nginx.Capabilities, dir *rundir.Dir, accessLog *nginx.AccessLog) (nginxconf.Environment, error) {
	env := nginxconf.Environment{
		Resources: feature.Resources(all.Features()), Directives: feature.Directives(all.Features()),
		HTTP2Directive: capabilities.HTTP2Directive,
		IPv6:           hasIPv6(),
		Passthrough:    o.Objects.Passthrough,
		HTTPPort:       nginxconf.Port(o.HTTPPort),
		HTTPSPort:      nginxconf.Port(o.HTTPSPort),

		DefaultServerPort: nginxconf.Port(o.DefaultServerPort), StatusPort: nginxconf.Port(o.StatusPort),

		Workers:   runtime.GOMAXPROCS(0),
		OpenFiles: openFiles(),
		Backlog:   backlog(),
		Debug:     o.DebugsNGINX(),
	}
	var errs []error
	path := func(text string) nginxconf.Path {
		p, err := nginxconf.NewPath(text)
		errs = append(errs, err)
		return p
	}
	env.RunDir = path(dir.Path())
	env.HealthPath = path(o.HealthCheckPath)
	env.AccessLog, env.PipedLog = path(accessLog.Path()), accessLog.Piped()
	if capabilities.Authorities != "" {
		env.Authorities = path(capabilities.Authorities)
	}
	for _, module := range capabilities.Modules {
		env.Modules = append(env.Modules, path(module))
	}
	word := func(text string) nginxconf.Word {
		w, err := nginxconf.NewWord(text)
		errs = append(errs, err)
		return w
	}
	env.User, env.Group = word(dir.Worker().User), word(dir.Worker().Group)
	return env, errors.Join(errs...)
}

func hasIPv6() bool {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// openFiles is the limit of open files for NGINX: that of this process, but not more
// than a worker needs for all its connections and their backends.
func openFiles() int {
	const most = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Max, most))
}

// backlog is the kernel's limit of queues of incoming connections.
func backlog() int {
	const usual = 511
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 1 {
		return usual
	}
	return n
}
