// Package headgatetest runs the whole of Headgate in a test: the controller, and a
// real NGINX on free ports of the loopback address, with manifests that the test
// gives.
package headgatetest

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model/geo"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/plan/nginxconf"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/publisher"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/check"
	"github.com/headgate/headgate/internal/source/dns"
	"github.com/headgate/headgate/internal/source/geodb"
	"github.com/headgate/headgate/internal/source/nginxtemplate"
	"github.com/headgate/headgate/internal/source/pki"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/porttest"
	"github.com/headgate/headgate/lua"
)

// Timeout bounds every wait in tests. It is far more than anything takes.
const Timeout = time.Minute

// An Instance is a running Headgate: controller and NGINX.
type Instance struct {
	t testing.TB

	// HTTP and HTTPS are the ports on the loopback address.
	HTTP, HTTPS uint16
	// DefaultServer and Status are the ports of these, 0 without Options.MorePorts.
	DefaultServer, Status uint16
	Client                *dataplane.Client
	Metrics               *metrics.Metrics
	Process               *nginx.Process
	RunDir                *rundir.Dir
	Log                   *Log
	// DefaultProfile is the name of the default profile, for units made by
	// hand. Only StartBare sets it.
	DefaultProfile string

	controller *controller.Controller
	// split is nil if the controller has NGINX itself.
	split      *split
	table      *traffic.Table
	deliveries chan delivery
	// exchanges are how often counters were exchanged, asked is when, in nanoseconds, and
	// longestExchange the longest time between two of these.
	exchanges, asked, longestExchange atomic.Int64
}

// A delivery is closed when its changes are with the controller.
type delivery struct {
	changes []source.Change
	done    chan struct{}
}

// Options say how an Instance differs from what a user would run.
type Options struct {
	// Workers is the number of NGINX's workers, 2 if it is 0.
	Workers int
	// Features are the real ones if nil.
	Features []feature.Feature
	// Dictionaries are of the usual size if nil.
	Dictionaries *nginxconf.Dictionaries
	// Authorities is the file of the system's certificate authorities, empty for none.
	// If nil it has one, which certifies nothing: reading those of the machine, and freeing
	// them in each process, is a sixth of what an NGINX takes that lives for a short test.
	Authorities *string
	// Timing is the real one if nil.
	Timing *edge.Timing
	// Manifests are there from the start. ConfigMap default/headgate holds
	// the options.
	Manifests string
	// DefaultBackend is a Service of the namespace default, none if empty.
	DefaultBackend string
	// NoLocalAddresses refuses to call this machine, as in a cluster.
	NoLocalAddresses bool
	// DefaultCertificate is a Secret of the namespace default, none if empty.
	DefaultCertificate string
	// CompleteChains fetches issuers' certificates.
	CompleteChains bool
	// Names say how DNS names are looked up. If nil no name server is asked
	// but 127.0.0.1.
	Names *dns.Settings
	// AccessLog is the file for it; none is written if it is empty, though
	// the configuration is as if it were.
	AccessLog string
	// MorePorts opens those of the default server and of the status as well.
	MorePorts bool
	// Reloaded is called after each reload, with the error if it failed. It may be nil.
	Reloaded func(error)
	// Traffic says how requests are counted; nil if they are not.
	Traffic *traffic.Settings
	// LimitStore is the URL of a store in which replicas count together, none if it is empty.
	LimitStore string
	// GeoDatabases is a folder with databases of where addresses are, none if it is empty.
	GeoDatabases string
	// Template is the file of the administrator's template, none if it is empty.
	Template string
	// Collector has the environment name a collector of spans. None are sent there.
	Collector bool
}

// Start runs Headgate until the test ends.
func Start(t testing.TB, o Options) *Instance {
	t.Helper()
	begun := time.Now()
	g := &Instance{t: t, Log: &Log{}, Metrics: metrics.New(), deliveries: make(chan delivery)}
	log := slog.New(slog.NewTextHandler(g.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.fill()
	env := g.prepare(o, log)
	names := o.names(log)
	// The authorities of tests are on this machine.
	authorities := pki.Settings{AllowLocal: true, MinPause: time.Millisecond, Log: log}
	issuers, responses := pki.NewIssuers(authorities), pki.NewOCSPResponses(authorities)
	health, databases := check.New(check.Settings{Log: log}), g.geoDatabases(o, log)
	findings := tracker.New(log, g.Metrics.Findings)
	certificates := expiry.New("k8s.io/ingress-nginx", findings.Update)
	g.Metrics.Registry.MustRegister(certificates)
	template := nginxtemplate.Open(o.Template, log)
	served := edge.Settings{
		Features: o.Features, Environment: env, Dictionaries: o.Dictionaries, Process: g.Process, RunDir: g.RunDir, Metrics: g.Metrics,
		Families: metrics.NewFamilies(g.Metrics.Registry, metrics.Identity{}, metrics.Build{}), Tracker: findings, Log: log, Timing: *o.Timing,
		Reloaded: o.Reloaded, Traffic: g.traffic(o, findings),
	}
	var published *publisher.Publisher
	if isSplit() {
		published = g.startSplit(served, log)
	}
	g.controller = controller.New(controller.Settings{
		Settings: served, Publisher: published,
		Store: store.Settings{
			Template:     template.Object(),
			IngressClass: "nginx", ControllerClass: "k8s.io/ingress-nginx", WatchWithoutClass: true, Classless: true,
			ConfigMap:      types.NamespacedName{Namespace: "default", Name: "headgate"},
			DefaultBackend: inDefault(o.DefaultBackend), DefaultCertificate: inDefault(o.DefaultCertificate),
			CompleteChains: o.CompleteChains, LocalAddresses: !o.NoLocalAddresses, Scope: spec.Scope{DeepInspect: true},
		},
		AnnotationPrefix: annotationPrefix, Expiry: certificates,
		Subscriptions: controller.Subscriptions{Addresses: names.Subscribe, Issuers: issuers.Subscribe, OCSPResponses: responses.Subscribe, Health: health.Subscribe, GeoDatabases: databases.Subscribe},
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go certificates.Run(ctx)
	g.exchange(o, log)
	g.run(Decode(t, o.Manifests), names.Run, issuers.Run, responses.Run, health.Run, databases.Run, template.Run)
	g.WaitSynced()
	noteStart(t, begun)
	return g
}

// noteStart reports to scripts/testsummary how long the start of NGINX and of Headgate took.
func noteStart(t testing.TB, begun time.Time) {
	t.Attr("nginx", time.Since(begun).Round(time.Millisecond).String())
}

// annotationPrefix stands before the names of annotations, without the slash.
const annotationPrefix = "nginx.ingress.kubernetes.io"

// geoDatabases looks often, and waits for no file.
func (g *Instance) geoDatabases(o Options, log *slog.Logger) *geodb.Folder {
	s := geodb.Settings{Path: o.GeoDatabases, Copies: g.RunDir.GeoDatabases(), Interval: 20 * time.Millisecond, Log: log}
	if o.GeoDatabases != "" {
		for _, edition := range geo.Editions() {
			s.Editions = append(s.Editions, edition.String())
		}
	}
	return geodb.New(s)
}

func (o *Options) names(log *slog.Logger) *dns.Source {
	settings := dns.Settings{}
	if o.Names != nil {
		settings = *o.Names
	}
	settings.Log = log
	return dns.New(settings)
}

// inDefault is an object of the namespace default, none if name is empty.
func inDefault(name string) types.NamespacedName {
	if name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: "default", Name: name}
}

// fill sets fields that are nil to their defaults.
func (o *Options) fill() {
	if o.Features == nil {
		o.Features = all.Features()
	}
	if o.Timing == nil {
		timing := edge.DefaultTiming()
		o.Timing = &timing
	}
}

// discovered are the nginx.Capabilities by $HEADGATE_NGINX.
var discovered sync.Map

// discover finds NGINX, which starts it twice, and remembers what it found for further tests of a package.
func discover(t testing.TB) nginx.Capabilities {
	t.Helper()
	binary := os.Getenv("HEADGATE_NGINX")
	known, ok := discovered.Load(binary)
	if !ok {
		found, err := nginx.Discover(t.Context())
		must(t, err)
		discovered.Store(binary, found)
		known = found
	}
	capabilities := known.(nginx.Capabilities)
	capabilities.Has = slices.Clone(capabilities.Has)
	return capabilities
}

func (g *Instance) prepare(o Options, log *slog.Logger) nginxconf.Environment {
	t := g.t
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of Headgate:\n%s", g.Log.String())
		}
	})
	capabilities := discover(t)
	// Not t.TempDir: workers must get there, and sockets want short names.
	path, err := os.MkdirTemp("", "hg-")
	must(t, err)
	must(t, os.Chmod(path, 0o711))
	t.Cleanup(func() { os.RemoveAll(path) })
	g.RunDir, err = rundir.Open(path)
	must(t, err)
	t.Cleanup(func() { g.RunDir.Close() })
	modules, err := lua.Files(o.Features)
	must(t, err)
	must(t, g.RunDir.WriteLua(modules))
	g.HTTP, g.HTTPS = porttest.Free(t), porttest.Free(t)
	if o.MorePorts {
		g.DefaultServer, g.Status = porttest.Free(t), porttest.Free(t)
	}
	g.Client = dataplane.New(g.RunDir.Socket())

	place := func(text string) nginxconf.Path {
		p, err := nginxconf.NewPath(text)
		must(t, err)
		return p
	}
	word := func(text string) nginxconf.Word {
		w, err := nginxconf.NewWord(text)
		must(t, err)
		return w
	}
	env := nginxconf.Environment{
		Resources: feature.Resources(o.Features), Directives: feature.Directives(o.Features),
		RunDir: place(g.RunDir.Path()), HTTP2Directive: capabilities.HTTP2Directive,
		HTTPPort: nginxconf.Port(g.HTTP), HTTPSPort: nginxconf.Port(g.HTTPS), DefaultServerPort: nginxconf.Port(g.DefaultServer), StatusPort: nginxconf.Port(g.Status),
		AccessLog: place("/dev/null"), HealthPath: place("/healthz"),
		User: word(g.RunDir.Worker().User), Group: word(g.RunDir.Worker().Group), Workers: 2, Backlog: 511,
	}
	if o.Workers > 0 {
		env.Workers = o.Workers
	}
	if o.AccessLog != "" {
		env.AccessLog = place(o.AccessLog)
	}
	if o.Authorities == nil {
		capabilities.Authorities = g.RunDir.Path() + ".pem"
		t.Cleanup(func() { os.Remove(capabilities.Authorities) })
		must(g.t, os.WriteFile(capabilities.Authorities, []byte(NewKeyPair(g.t, "nobody").Certificate), 0o644))
	} else {
		capabilities.Authorities = *o.Authorities
		capabilities.Has = slices.DeleteFunc(capabilities.Has, func(has string) bool {
			return has == string(feature.SystemAuthorities) && *o.Authorities == ""
		})
	}
	if o.LimitStore != "" {
		capabilities.Has = append(capabilities.Has, string(feature.LimitStore))
	}
	if o.Collector {
		capabilities.Has = append(capabilities.Has, string(feature.TraceCollector))
	}
	if capabilities.Authorities != "" {
		env.Authorities = place(capabilities.Authorities)
	}
	for _, module := range capabilities.Modules {
		env.Modules = append(env.Modules, place(module))
	}
	g.Process = nginx.New(nginx.Options{
		Capabilities: capabilities, Dir: g.RunDir, Log: log,
		Addresses: []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), g.HTTP), netip.AddrPortFrom(netip.IPv4Unspecified(), g.HTTPS),
		},
	})
	return env
}

// run starts the controller, and ends it with the test.
func (g *Instance) run(first []metav1.Object, more ...controller.Source) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	from := func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		deliver(ctx, changesOf(first, false))
		for {
			select {
			case d := <-g.deliveries:
				deliver(ctx, d.changes)
				close(d.done)
			case <-ctx.Done():
				return nil
			}
		}
	}
	go func() { ended <- g.controller.Run(ctx, controller.MergeSources(append(more, from)...)) }()
	g.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			g.t.Errorf("the controller ended: %v", err)
		}
		g.split.stop()
		g.stop()
	})
}

// WaitSynced waits until NGINX serves all that was put.
func (g *Instance) WaitSynced() {
	g.t.Helper()
	Eventually(g.t, "NGINX serves what was put", g.Synced)
}

// Synced reports whether NGINX serves all that was put.
func (g *Instance) Synced() bool { return g.controller.Synced() && g.split.synced() }

// Applied is Synced apart from hosts that wait for a reload.
func (g *Instance) Applied() bool { return g.controller.Applied() }

// Value is the value of one of Headgate's metrics.
func (g *Instance) Value(c prometheus.Collector) int { return int(testutil.ToFloat64(c)) }

// State is what one worker reports about itself.
func (g *Instance) State() dataplane.State {
	g.t.Helper()
	state, err := g.Client.State(g.t.Context())
	must(g.t, err)
	return state
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", Timeout, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
