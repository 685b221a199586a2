package main

import (
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
)

// serviceOptions are the flags about Services.
type serviceOptions struct {
	topology bool
}

func (o *serviceOptions) addServiceFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.topology, "enable-topology-aware-routing", false, "prefer endpoints with a hint for the zone of Headgate's Node, if a Service requests it (needs POD_NAME and POD_NAMESPACE; without effect in a folder)")
}

// ownPod is the Pod of this process, if its zone is needed.
func (o *serviceOptions) ownPod(log *slog.Logger) types.NamespacedName {
	if !o.topology {
		return types.NamespacedName{}
	}
	pod := knownPod()
	if pod.Name == "" {
		log.Warn("--enable-topology-aware-routing requires the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod",
			"effect", "topology hints are ignored")
		return types.NamespacedName{}
	}
	return pod
}

// knownPod is the Pod of this process by its environment, or empty if a variable is
// missing.
func knownPod() types.NamespacedName {
	pod := podOfEnvironment()
	if pod.Namespace == "" || pod.Name == "" {
		return types.NamespacedName{}
	}
	return pod
}
