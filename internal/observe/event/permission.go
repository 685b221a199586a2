package event

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/cluster/permission"
)

func writing(namespace string) permission.Permission {
	return permission.Permission{
		Resource: "events", Group: corev1.GroupName, Namespace: namespace, Verbs: "create patch",
		Need:    "to write Events about findings, Ingresses that are served and reloads of NGINX",
		Without: "there are no such Events: only the log and /v1/findings have findings",
	}
}

func podOf(namespace string) permission.Permission {
	return permission.Permission{
		Resource: "pods", Group: corev1.GroupName, Namespace: namespace, Verbs: "get",
		Need: "to write RELOAD Events on Headgate's Pod", Without: "there are no RELOAD Events",
	}
}

// Permissions are those that a Recorder needs. It runs in its own namespace and
// writes about objects of others; an empty one means all.
func Permissions(own string, others ...string) []permission.Permission {
	list := []permission.Permission{podOf(own)}
	if slices.Contains(others, "") {
		return append(list, writing(""))
	}
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(append(others, own)))) {
		list = append(list, writing(namespace))
	}
	return list
}
