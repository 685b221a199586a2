package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/linequeue"
	"github.com/headgate/headgate/internal/nginx"
)

// options are the flags of the controller.
type options struct {
	log *linequeue.Writer

	manifestsDir string
	runDir       string

	httpPort, httpsPort, healthzPort uint16
	healthzHost, healthCheckPath     string

	selection

	kubeconfig, apiserverHost, certificateAuthority string
	kubeAPIQPS                                      float32
	kubeAPIBurst                                    int

	statusOptions
	webhookOptions
	topology, disableSyncEvents bool

	shutdownGracePeriod, postShutdownGracePeriod int

	logFormat string
	verbosity int
}

func newCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:           "headgate",
		Short:         "An Ingress controller that runs NGINX and applies most changes without a reload",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if !command.Flags().Changed("post-shutdown-grace-period") && o.manifestsDir != "" {
				// A folder has no load balancer that must notice the end.
				o.postShutdownGracePeriod = 0
			}
			o.log = linequeue.New(os.Stderr)
			defer o.log.Flush(logTimeout)
			log, err := o.logger(o.log)
			if err != nil {
				return err
			}
			warnLaterFlags(command.Flags(), log)
			o.objects.ReservedPorts = reservedPorts(command.Flags())
			return run(command.Context(), o, log)
		},
	}
	o.addFlags(command.Flags())
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(newLintCommand(), newExplainCommand(), newRBACCommand(), newDebugCommand())
	return command
}

func (o *options) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.manifestsDir, "manifests-dir", "", "folder of Kubernetes manifests to serve instead of a cluster; it is watched for changes")
	f.StringVar(&o.runDir, "run-dir", "", "directory that NGINX runs in (default: headgate-HTTPPORT-HTTPSPORT in /run for root, in $XDG_RUNTIME_DIR for others, otherwise a directory in the system's temporary directory)")
	f.Uint16Var(&o.httpPort, "http-port", 80, "port for http")
	f.Uint16Var(&o.httpsPort, "https-port", 443, "port for https")
	f.Uint16Var(&o.healthzPort, "healthz-port", 10254, "port for the health check and metrics")
	f.StringVar(&o.healthzHost, "healthz-host", "", "address for the health check and metrics (default: all)")
	f.StringVar(&o.healthCheckPath, "health-check-path", "/healthz", "path of the health check")
	o.addSelectionFlags(f)
	o.addKubernetesFlags(f)
	f.BoolVar(&o.topology, "enable-topology-aware-routing", false, "prefer endpoints with a hint for the zone of Headgate's Node, if a Service requests it (needs POD_NAME and POD_NAMESPACE; without effect in a folder)")
	f.BoolVar(&o.objects.CompleteChains, "enable-ssl-chain-completion", false, "fetch issuers' certificates that are missing in tls.crt from the URLs in the certificates")
	o.addStatusFlags(f)
	f.BoolVar(&o.disableSyncEvents, "disable-sync-events", false, "don't write Events for Ingresses that are applied")
	f.IntVar(&o.shutdownGracePeriod, "shutdown-grace-period", 0, "seconds to wait after SIGTERM before NGINX is stopped; the health check fails during this time")
	f.IntVar(&o.postShutdownGracePeriod, "post-shutdown-grace-period", 10, "seconds to wait after NGINX has ended before the controller ends (default with --manifests-dir: 0)")
	f.StringVar(&o.logFormat, "log-format", "text", "log format: text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log; debug messages from 2")
	o.addWebhookFlags(f)
	addLaterFlags(f)
}

func (o *options) addKubernetesFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's ServiceAccount)")
	f.StringVar(&o.apiserverHost, "apiserver-host", "", "URL of the API server (default: that of the kubeconfig or the pod)")
	f.StringVar(&o.certificateAuthority, "certificate-authority", "", "file with the certificate authority of --apiserver-host")
	f.Float32Var(&o.kubeAPIQPS, "kube-api-qps", 100, "maximum requests per second to the API server")
	f.IntVar(&o.kubeAPIBurst, "kube-api-burst", 200, "maximum burst of requests to the API server")
}

func (o options) logger(to io.Writer) (*slog.Logger, error) {
	settings := &slog.HandlerOptions{Level: slog.LevelInfo}
	if o.verbosity >= 2 {
		settings.Level = slog.LevelDebug
	}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(to, settings)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, settings)), nil
	}
	return nil, fmt.Errorf("invalid value %q of --log-format: must be text or json", o.logFormat)
}

// check rejects invalid values and combinations.
func (o options) check() error {
	if o.manifestsDir != "" && (o.kubeconfig != "" || o.apiserverHost != "") {
		return errors.New("--manifests-dir serves a folder instead of a cluster: remove it, or --kubeconfig and --apiserver-host")
	}
	if o.certificateAuthority != "" && o.apiserverHost == "" {
		return errors.New("--certificate-authority requires --apiserver-host")
	}
	if o.kubeAPIQPS <= 0 || o.kubeAPIBurst <= 0 {
		return errors.New("--kube-api-qps and --kube-api-burst must be greater than 0")
	}
	if err := o.checkSelection(); err != nil {
		return err
	}
	if o.httpPort == 0 || o.httpsPort == 0 || o.healthzPort == 0 {
		return errors.New("ports must be from 1 to 65535")
	}
	if o.httpPort == o.httpsPort || o.httpPort == o.healthzPort || o.httpsPort == o.healthzPort {
		return errors.New("--http-port, --https-port and --healthz-port must differ")
	}
	if !strings.HasPrefix(o.healthCheckPath, "/") {
		return fmt.Errorf("invalid value %q of --health-check-path: must begin with a slash", o.healthCheckPath)
	}
	return errors.Join(o.checkStatus(), o.checkWebhook(o.httpPort, o.httpsPort, o.healthzPort))
}

// runDirectory is the directory that NGINX runs in, which may not exist.
func (o options) runDirectory() string {
	return cmp.Or(o.runDir, nginx.DefaultRunDir(o.instance()))
}

// makeRunDirectory is runDirectory, and creates the default one.
func (o options) makeRunDirectory() (string, error) {
	if o.runDir != "" {
		return o.runDir, nil
	}
	return nginx.MakeDefaultRunDir(o.instance())
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
