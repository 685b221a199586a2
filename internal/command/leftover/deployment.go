package leftover

import (
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// removedFlags are the flags that ingress-nginx had once.
var removedFlags = []struct{ name, since, advice string }{
	{"--sort-backends", "0.22.0", "delete it: endpoints are not sorted any more"},
	{"--force-namespace-isolation", "0.24.0", "delete it: annotations name no Secrets of other namespaces unless the ConfigMap allows it"},
}

// Deployment returns the leftovers of a Deployment of a controller, and none of others.
func Deployment(d *appsv1.Deployment) []Leftover {
	var found []Leftover
	for _, container := range d.Spec.Template.Spec.Containers {
		if !runsController(container) {
			continue
		}
		for _, argument := range append(append([]string{}, container.Command...), container.Args...) {
			name, _, _ := strings.Cut(argument, "=")
			for _, flag := range removedFlags {
				if name == flag.name {
					found = append(found, Leftover{flag.name, flag.since, "the flag was removed: ingress-nginx does not start with it", flag.advice})
				}
			}
		}
	}
	return found
}

// runsController reports whether a container is that of ingress-nginx or Headgate, by
// its program or its image.
func runsController(c corev1.Container) bool {
	for _, argument := range append(append([]string{}, c.Command...), c.Args...) {
		switch path.Base(argument) {
		case "nginx-ingress-controller", "headgate":
			return true
		}
	}
	for _, name := range []string{"nginx-ingress-controller", "ingress-nginx/controller", "headgate"} {
		if strings.Contains(c.Image, name) {
			return true
		}
	}
	return false
}
