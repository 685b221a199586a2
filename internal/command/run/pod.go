package run

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
)

// podOfEnvironment is the pod of this process, by the variables that ingress-nginx
// reads too.
func podOfEnvironment() types.NamespacedName {
	return types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
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

// ownNamespace is that of the pod. Outside of a pod, it is that of the ConfigMap, or
// "default".
func ownNamespace(configMap types.NamespacedName) string {
	return cmp.Or(podOfEnvironment().Namespace, configMap.Namespace, "default")
}

// candidate is the namespace of the Lease, and the name of this process in the
// election: that of the pod. Outside of a pod, the namespace is that of the
// ConfigMap, or "default", and the name is unique even on the same machine: two
// processes with the same name would both lead.
func candidate(configMap types.NamespacedName) (namespace, identity string, err error) {
	pod := podOfEnvironment()
	namespace = ownNamespace(configMap)
	if pod.Name != "" {
		return namespace, pod.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", "", fmt.Errorf("make a name for the election: %w", err)
	}
	return namespace, host + "_" + rand.Text(), nil
}
