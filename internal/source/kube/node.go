package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// zoned reports whether anybody reads what is said of zones.
func (s *Source) zoned() bool { return s.settings.Pod.Name != "" }

const unzoned = "topology hints are ignored: requests go to endpoints in all zones"

// followNode follows the Node that this runs on, if its zone is to be known.
// Nothing waits for it.
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

// findNode finds the name of the Node that this runs on, which never changes.
// It is empty if nobody knows it, or when ctx ends before.
func (s *Source) findNode(ctx context.Context) string {
	pod := s.settings.Pod
	asked := s.settings.needs().pod
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()
	for pause := firstPause; ; pause = min(2*pause, refusedPause) {
		sent := time.Now()
		list, err := s.settings.Clients.Objects.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if s.answered(ctx, asked, "list", sent, err) == nil {
			if len(list.Items) == 0 || list.Items[0].Spec.NodeName == "" {
				s.settings.Log.Warn("kubernetes: the Pod that Headgate is said to run in is on no Node", "pod", pod, "effect", unzoned)
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
