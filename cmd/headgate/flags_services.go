package main

import (
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
)

// serviceOptions are what the flags say of Services.
type serviceOptions struct {
	topology bool
}

func (o *serviceOptions) addServiceFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.topology, "enable-topology-aware-routing", false, "prefer endpoints that are hinted for the zone of Headgate's Node, where a Service asks for it (needs POD_NAME and POD_NAMESPACE; a folder has no zones)")
}

// ownPod is the Pod that this runs in, where its zone is to be known.
func (o *serviceOptions) ownPod(log *slog.Logger) types.NamespacedName {
	if !o.topology {
		return types.NamespacedName{}
	}
	pod := knownPod()
	if pod.Name == "" {
		log.Warn("--enable-topology-aware-routing: the environment variables POD_NAME and POD_NAMESPACE must name Headgate's Pod",
			"effect", "topology hints are ignored")
		return types.NamespacedName{}
	}
	return pod
}

// knownPod is the Pod that the environment says this runs in, empty if it does
// not say all of its name.
func knownPod() types.NamespacedName {
	pod := podOfEnvironment()
	if pod.Namespace == "" || pod.Name == "" {
		return types.NamespacedName{}
	}
	return pod
}
