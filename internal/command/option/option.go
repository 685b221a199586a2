// Package option has the flags of the controller: their names, defaults and checks, and which of
// them have no effect.
//
// It knows what ingress-nginx accepts. What the controller does with a value is for package run.
package option

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/usage"
)

// Options are the flags of the controller.
type Options struct {
	// ManifestsDir is a folder to serve instead of a cluster.
	ManifestsDir string
	Template     string
	RunDir       string

	Ports
	selection.Flags
	Status
	Webhook
	Metrics
	LimitStore
	GeoIP
	Dashboard
	Topology, DisableSyncEvents bool

	// ShutdownGracePeriod and PostShutdownGracePeriod are in seconds.
	ShutdownGracePeriod, PostShutdownGracePeriod int

	Log
	Profiler
	// SyncRateLimit counts if its flag is set.
	SyncRateLimit float32

	// part is what runs: Control is only of a control, and Edge only of an edge.
	part part
	Control
	Edge
}

// Add adds all flags.
func (o *Options) Add(f *pflag.FlagSet) {
	f.StringVar(&o.Template, "template", "/etc/nginx/template/nginx.tmpl", "file with a template of nginx.conf to use instead of the built-in one, if it exists; it is watched for changes")
	f.StringVar(&o.ManifestsDir, "manifests-dir", "", "folder of Kubernetes manifests to serve instead of a cluster; it is watched for changes")
	f.StringVar(&o.RunDir, "run-dir", "", "directory that NGINX runs in (default: headgate-HTTPPORT-HTTPSPORT in /run for root, in $XDG_RUNTIME_DIR for others, otherwise a directory in the system's temporary directory)")
	o.addPortFlags(f)
	o.Flags.Add(f)
	f.BoolVar(&o.Topology, "enable-topology-aware-routing", false, "prefer endpoints with a hint for the zone of Headgate's Node, if a Service requests it (needs POD_NAME and POD_NAMESPACE; without effect in a folder, and in a control)")
	f.BoolVar(&o.Objects.CompleteChains, "enable-ssl-chain-completion", false, "fetch issuers' certificates that are missing in tls.crt from the URLs in the certificates")
	o.addStatusFlags(f)
	f.BoolVar(&o.DisableSyncEvents, "disable-sync-events", false, "don't write Events for Ingresses that are applied")
	f.IntVar(&o.ShutdownGracePeriod, "shutdown-grace-period", 0, "seconds to wait after SIGTERM before NGINX is stopped; the health check fails during this time")
	f.IntVar(&o.PostShutdownGracePeriod, "post-shutdown-grace-period", 10, "seconds to wait after NGINX has ended before the controller ends (default with --manifests-dir: 0)")
	f.Float32Var(&o.SyncRateLimit, "sync-rate-limit", 0.3, "maximum number of reloads of NGINX per second; other changes do not wait. Without the flag, it is one reload in 2 s")
	o.addLogFlags(f)
	o.addProfilerFlags(f)
	o.addWebhookFlags(f)
	addFlagsWithoutEffect(f)
	o.AddMetricsFlags(f)
	o.addLimitStoreFlags(f)
	o.addGeoIPFlags(f)
	o.addDashboardFlags(f)
	f.Int("ssl-passthrough-proxy-port", 442, "port that TCP and UDP services can't have; Headgate itself uses a unix socket for what ingress-nginx uses it for")
}

// Check rejects invalid values and combinations.
func (o Options) Check() error {
	for name, value := range map[string]string{"kubeconfig": o.Kubeconfig, "apiserver-host": o.APIServerHost} {
		if o.ManifestsDir != "" && value != "" {
			return fmt.Errorf("--manifests-dir and --%s are mutually exclusive: one is for a folder, the other for a cluster", name)
		}
	}
	if o.CertificateAuthority != "" && o.APIServerHost == "" {
		return errors.New("--certificate-authority requires --apiserver-host")
	}
	if o.KubeAPIQPS <= 0 {
		return usage.InvalidValue(o.KubeAPIQPS, "kube-api-qps", "greater than 0")
	}
	if o.KubeAPIBurst <= 0 {
		return usage.InvalidValue(o.KubeAPIBurst, "kube-api-burst", "greater than 0")
	}
	if err := o.Flags.Check(); err != nil {
		return err
	}
	if o.SyncRateLimit <= 0 {
		return usage.InvalidValue(o.SyncRateLimit, "sync-rate-limit", "greater than 0")
	}
	return cmp.Or(
		usage.NotNegative("shutdown-grace-period", o.ShutdownGracePeriod), usage.NotNegative("post-shutdown-grace-period", o.PostShutdownGracePeriod),
		o.checkPart(), o.checkPortFlags(), o.checkStatus(), o.checkSelfSigned(o.ManifestsDir != ""), o.checkWebhook(), checkPorts(o.Listening()), o.checkLog(), o.checkMetrics(), o.checkLimitStore(), o.checkGeoIP(), o.checkDashboard(),
	)
}

// checkPart rejects what is wrong in the flags of a control or an edge.
func (o Options) checkPart() error {
	switch o.part {
	case control:
		return o.Control.check(o.ManifestsDir != "")
	case edge:
		return o.Edge.check()
	}
	return nil
}

// Listening are the ports that this process listens on.
func (o Options) Listening() []PortFlag {
	switch o.part {
	case control:
		// The address is checked already.
		port, _ := portOf(o.EdgeAddress)
		return slices.Concat([]PortFlag{{"edge-address", port}, {"healthz-port", o.HealthzPort}}, o.profilerPorts(), o.webhookPorts(), o.dashboardPorts())
	case edge:
		return slices.Concat(o.Ports.open(), o.profilerPorts())
	}
	return slices.Concat(o.Ports.open(), o.profilerPorts(), o.webhookPorts(), o.dashboardPorts())
}
