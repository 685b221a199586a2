package main

import (
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
)

// serviceOptions are what the flags say of Services.
type serviceOptions struct {
	noExternalNames, localExternalNames, topology bool
}

func (o *serviceOptions) addServiceFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.noExternalNames, "disable-svc-external-name", false, "leave Services of type ExternalName without endpoints")
	f.BoolVar(&o.localExternalNames, "allow-local-svc-external-name", false, "let names of Services of type ExternalName lead to loopback, link-local and unspecified addresses")
	f.BoolVar(&o.topology, "enable-topology-aware-routing", false, "prefer endpoints that are hinted for the zone of Headgate's Node, where a Service asks for it (needs POD_NAME and POD_NAMESPACE; a folder has no zones)")
}

// ownPod is the Pod that this runs in, where its zone is to be known.
func (o *serviceOptions) ownPod(log *slog.Logger) types.NamespacedName {
	if !o.topology {
		return types.NamespacedName{}
	}
	pod := types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
	if pod.Namespace == "" || pod.Name == "" {
		log.Warn("--enable-topology-aware-routing: the environment variables POD_NAME and POD_NAMESPACE must name Headgate's Pod",
			"effect", "topology hints are ignored")
		return types.NamespacedName{}
	}
	return pod
}
