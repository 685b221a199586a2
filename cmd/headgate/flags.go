package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/observe/linequeue"
)

// options are the flags of the controller.
type options struct {
	log *linequeue.Writer

	manifestsDir string
	template     string
	runDir       string

	portOptions
	selection

	kubeconfig, apiserverHost, certificateAuthority string
	kubeAPIQPS                                      float32
	kubeAPIBurst                                    int

	statusOptions
	webhookOptions
	metricsOptions
	limitStoreOptions
	geoIPOptions
	dashboardOptions
	topology, disableSyncEvents bool

	shutdownGracePeriod, postShutdownGracePeriod int

	logOptions
	profilerOptions
	syncRateLimit float32
	// timing is the result of --sync-rate-limit.
	timing controller.Timing
}

func newCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:           "headgate",
		Short:         "An Ingress controller that runs NGINX and applies most changes without a reload",
		Args:          onlyCommands,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return o.start(command) },
	}
	o.addFlags(command.Flags())
	addVersionFlag(command)
	explainFlagErrors(command)
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(newLintCommand(), newExplainCommand(), newRBACCommand(), newDebugCommand(), newTemplateCommand(), newCertgenCommand(), newWaitShutdownCommand())
	return command
}

// start serves until the command's context ends.
func (o options) start(command *cobra.Command) error {
	f := command.Flags()
	if !f.Changed("post-shutdown-grace-period") && o.manifestsDir != "" {
		// A folder has no load balancer that must notice the end.
		o.postShutdownGracePeriod = 0
	}
	if err := o.check(); err != nil {
		return err
	}
	o.log = linequeue.New(os.Stderr)
	defer o.log.Flush(logTimeout)
	files, err := o.openLogFiles(command.Root().Name(), os.TempDir())
	if err != nil {
		return err
	}
	// The last lines are lost if the disk does not take them.
	defer files.Close(logTimeout)
	log := o.logger(o.log, files)
	warnFlagsWithoutEffect(f, log)
	warnLogFlags(f, log)
	o.objects.ReservedPorts = reservedPorts(f)
	o.timing = o.reloadTiming(f.Changed("sync-rate-limit"))
	return run(command.Context(), o, log)
}

// reloadTiming is the timing of reloads, with --sync-rate-limit if it is set.
func (o options) reloadTiming(limited bool) controller.Timing {
	timing := controller.DefaultTiming()
	if limited {
		timing.ReloadInterval = time.Duration(float64(time.Second) / float64(o.syncRateLimit))
	}
	return timing
}

func (o *options) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.template, "template", "/etc/nginx/template/nginx.tmpl", "file with a template of nginx.conf to use instead of the built-in one, if it exists; it is watched for changes")
	f.StringVar(&o.manifestsDir, "manifests-dir", "", "folder of Kubernetes manifests to serve instead of a cluster; it is watched for changes")
	f.StringVar(&o.runDir, "run-dir", "", "directory that NGINX runs in (default: headgate-HTTPPORT-HTTPSPORT in /run for root, in $XDG_RUNTIME_DIR for others, otherwise a directory in the system's temporary directory)")
	o.addPortFlags(f)
	o.addSelectionFlags(f)
	o.addKubernetesFlags(f)
	f.BoolVar(&o.topology, "enable-topology-aware-routing", false, "prefer endpoints with a hint for the zone of Headgate's Node, if a Service requests it (needs POD_NAME and POD_NAMESPACE; without effect in a folder)")
	f.BoolVar(&o.objects.CompleteChains, "enable-ssl-chain-completion", false, "fetch issuers' certificates that are missing in tls.crt from the URLs in the certificates")
	o.addStatusFlags(f)
	f.BoolVar(&o.disableSyncEvents, "disable-sync-events", false, "don't write Events for Ingresses that are applied")
	f.IntVar(&o.shutdownGracePeriod, "shutdown-grace-period", 0, "seconds to wait after SIGTERM before NGINX is stopped; the health check fails during this time")
	f.IntVar(&o.postShutdownGracePeriod, "post-shutdown-grace-period", 10, "seconds to wait after NGINX has ended before the controller ends (default with --manifests-dir: 0)")
	f.Float32Var(&o.syncRateLimit, "sync-rate-limit", 0.3, "maximum number of reloads of NGINX per second; other changes do not wait. Without the flag, it is one reload in 2 s")
	o.addLogFlags(f)
	o.addProfilerFlags(f)
	o.addWebhookFlags(f)
	addFlagsWithoutEffect(f)
	o.addMetricsFlags(f)
	o.addLimitStoreFlags(f)
	o.addGeoIPFlags(f)
	o.addDashboardFlags(f)
	addPassthroughPortFlag(f)
}

func (o *options) addKubernetesFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's ServiceAccount)")
	f.StringVar(&o.apiserverHost, "apiserver-host", "", "URL of the API server (default: that of the kubeconfig or the pod)")
	f.StringVar(&o.certificateAuthority, "certificate-authority", "", "file with the certificate authority of --apiserver-host")
	f.Float32Var(&o.kubeAPIQPS, "kube-api-qps", 100, "maximum requests per second to the API server")
	f.IntVar(&o.kubeAPIBurst, "kube-api-burst", 200, "maximum burst of requests to the API server")
}

// check rejects invalid values and combinations.
func (o options) check() error {
	for name, value := range map[string]string{"kubeconfig": o.kubeconfig, "apiserver-host": o.apiserverHost} {
		if o.manifestsDir != "" && value != "" {
			return fmt.Errorf("--manifests-dir and --%s are mutually exclusive: one is for a folder, the other for a cluster", name)
		}
	}
	if o.certificateAuthority != "" && o.apiserverHost == "" {
		return errors.New("--certificate-authority requires --apiserver-host")
	}
	if o.kubeAPIQPS <= 0 {
		return invalidValue(o.kubeAPIQPS, "kube-api-qps", "greater than 0")
	}
	if o.kubeAPIBurst <= 0 {
		return invalidValue(o.kubeAPIBurst, "kube-api-burst", "greater than 0")
	}
	if err := o.checkSelection(); err != nil {
		return err
	}
	if o.syncRateLimit <= 0 {
		return invalidValue(o.syncRateLimit, "sync-rate-limit", "greater than 0")
	}
	return cmp.Or(
		notNegative("shutdown-grace-period", o.shutdownGracePeriod), notNegative("post-shutdown-grace-period", o.postShutdownGracePeriod),
		o.checkPortFlags(), o.checkStatus(), o.checkSelfSigned(o.manifestsDir != ""), o.checkWebhook(), checkPorts(o.ports()), o.checkLog(), o.checkMetrics(), o.checkLimitStore(), o.checkGeoIP(), o.checkDashboard(),
	)
}

// ports are those that Headgate listens on.
func (o options) ports() []portFlag {
	return slices.Concat(o.portOptions.ports(), o.profilerPorts(), o.webhookPorts(), o.dashboardPorts())
}

// runDirectory is the directory that NGINX runs in, which may not exist.
func (o options) runDirectory() string {
	return cmp.Or(o.runDir, rundir.Default(o.instance()))
}

// makeRunDirectory is runDirectory, and creates the default one.
func (o options) makeRunDirectory() (string, error) {
	if o.runDir != "" {
		return o.runDir, nil
	}
	return rundir.MakeDefault(o.instance())
}

func (o options) instance() string { return fmt.Sprintf("%d-%d", o.httpPort, o.httpsPort) }

// objectName parses the value of a flag that names an object.
func objectName(flag, text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("invalid value %q of --%s: must be NAMESPACE/NAME", text, flag)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
