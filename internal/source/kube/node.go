package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
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
		Permission: s.settings.needs().node, object: &corev1.Node{}, mirror: newMirror(s.trim, s.changed),
		requests: requestsOf(s.settings.Clients.Objects.CoreV1().Nodes(), fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()),
	})
}

// findNode finds the name of the Node of this process, which never changes. It is
// empty if the Pod has none, or if ctx ends before.
func (s *Source) findNode(ctx context.Context) string {
	pod := s.settings.Pod
	asked := s.settings.needs().pod
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()
	for pause := firstPause; ; pause = min(2*pause, refusedPause) {
		sent := time.Now()
		list, err := s.settings.Clients.Objects.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if s.answered(ctx, asked, "list", sent, err) == nil {
			if len(list.Items) == 0 || list.Items[0].Spec.NodeName == "" {
				s.settings.Log.Warn("kubernetes: the Pod of Headgate is not found, or is on no Node", "pod", pod, "effect", unzoned)
				return ""
			}
			return list.Items[0].Spec.NodeName
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(pause):
		}
	}
}
