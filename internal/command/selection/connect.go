package selection

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/observe/logoutput"
	"github.com/headgate/headgate/internal/source/kube"
)

// A Cluster is the set of flags with which commands connect to a cluster.
type Cluster struct {
	Kubeconfig, APIServerHost, CertificateAuthority string

	KubeAPIQPS   float32
	KubeAPIBurst int
}

func (c *Cluster) addClusterFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's ServiceAccount)")
	f.StringVar(&c.APIServerHost, "apiserver-host", "", "URL of the API server (default: that of the kubeconfig or the pod)")
	f.StringVar(&c.CertificateAuthority, "certificate-authority", "", "file with the certificate authority of --apiserver-host")
	f.Float32Var(&c.KubeAPIQPS, "kube-api-qps", 100, "maximum requests per second to the API server")
	f.IntVar(&c.KubeAPIBurst, "kube-api-burst", 200, "maximum burst of requests to the API server")
}

// IsNamed reports whether a flag names the cluster. Otherwise it is that of the pod.
func (c Cluster) IsNamed() bool { return c.Kubeconfig != "" || c.APIServerHost != "" }

// CheckFile rejects flags of a cluster together with a path of manifests.
func (c Cluster) CheckFile(path string) error {
	if path != "" && c.IsNamed() {
		return errors.New("-f reads manifests instead of a cluster: remove it, or --kubeconfig and --apiserver-host")
	}
	return nil
}

// Connect returns clients of the cluster. agent is the program for the API server.
func (c Cluster) Connect(agent string) (kube.Clients, error) {
	return kube.Connect(kube.Connection{
		Kubeconfig: c.Kubeconfig, Host: c.APIServerHost, CertificateAuthority: c.CertificateAuthority,
		QPS: c.KubeAPIQPS, Burst: c.KubeAPIBurst, UserAgent: agent,
	})
}

// ShareLog has the client of the API server log to log, with the same verbosity.
func ShareLog(log *slog.Logger, verbosity int, modules logoutput.Modules) error {
	var f flag.FlagSet
	klog.InitFlags(&f)
	if err := f.Set("v", strconv.Itoa(logoutput.Cap(verbosity))); err != nil {
		return fmt.Errorf("set the verbosity of the client of the API server: %w", err)
	}
	if err := f.Set("vmodule", modules.Capped().String()); err != nil {
		return fmt.Errorf("set the verbosity of the client of the API server: %w", err)
	}
	klog.SetSlogLogger(log)
	return nil
}
