package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// zoned reports whether the fields about zones are read.
func (s *Source) zoned() bool { return s.settings.Pod.Name != "" }

const unzoned = "topology hints are ignored: requests go to endpoints in all zones"

// followNode follows the Node of this process, if its zone is needed. The first
// batch does not wait for it.
func (s *Source) followNode(ctx context.Context) {
	if !s.zoned() {
		return
	}
	name := s.findNode(ctx)
	if name == "" {
		return
	}
	s.follow(ctx, &reflection{
		s.settings.needs().node, &corev1.Node{}, newMirror(s.trim, s.changed),
		requestsOf(s.settings.Clients.Objects.Nodes(), named(name).String()), nil,
	})
}

// findNode finds the name of the Node of this process, which never changes. It is
// empty if the Pod has none, or if ctx ends before.
func (s *Source) findNode(ctx context.Context) string {
	name := s.settings.Pod
	one := requestsOf(s.settings.Clients.Objects.Pods(name.Namespace), named(name.Name).String())
	for pause := firstPause; ; pause = min(2*pause, refusedPause) {
		object, _, err := s.fetch(ctx, s.settings.needs().pod, one)
		if err == nil {
			pod, ok := object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" {
				s.settings.Log.Warn("kubernetes: the Pod of Headgate is not found, or is on no Node", "pod", name, "effect", unzoned)
				return ""
			}
			return pod.Spec.NodeName
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(pause):
		}
	}
}
