package kube_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source/kube"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

func node(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
}

func inPod(s *kube.Settings) { s.Pod = types.NamespacedName{Namespace: "headgate", Name: "here"} }

// TestNode: the Node of the own Pod is followed, and no other.
func TestNode(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(pod("here", "self"), pod("there", "other"), node("self", "east"), node("other", "west"))
	for i := range 20 {
		a.put(pod(fmt.Sprintf("there-%d", i), "other"))
	}
	w := start(t, a, inPod)
	w.awaitNames(append(slices.Clone(filled), "Node /self")...)
	zone := func() string {
		n, ok := w.objects["Node /self"].(*corev1.Node)
		if !ok {
			return ""
		}
		return n.Labels[corev1.LabelTopologyZone]
	}
	a.put(node("other", "north"), node("self", "south"))
	w.await("another zone", func() bool { return zone() == "south" })

	hinted := slice("hinted")
	hinted.Endpoints = []discoveryv1.Endpoint{{
		Addresses: []string{"10.0.0.1"}, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "south"}}},
	}}
	a.put(hinted)
	w.await("hints", func() bool {
		s, ok := w.objects["EndpointSlice shop/hinted-1"].(*discoveryv1.EndpointSlice)
		return ok && s.Endpoints[0].Hints != nil
	})
	a.remove(node("self", ""))
	w.await("the Node's end", func() bool { return w.objects["Node /self"] == nil })
}

// TestNodeNotWanted: without a Pod no Pod and no Node is asked for.
func TestNodeNotWanted(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(pod("here", "self"), node("self", "east"))
	w := start(t, a, nil)
	w.awaitNames(filled...)
	if n := a.asked("list pods") + a.asked("list nodes") + a.asked("watch nodes"); n != 0 {
		t.Errorf("%d requests for Pods and Nodes", n)
	}
}

// TestNodePermissions: what is missing is named, nothing waits for it, and it
// is taken when it comes.
func TestNodePermissions(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(pod("here", "self"), node("self", "east"))
	a.forbid("list pods", true)
	a.forbid("list nodes", true)
	a.forbid("watch nodes", true)
	w := start(t, a, inPod)
	w.awaitNames(filled...)
	w.await("a line about Pods", func() bool {
		return w.logLine("a permission is missing", "verb=list resource=pods namespace=headgate", "topology hints are ignored")
	})
	a.forbid("list pods", false)
	w.await("a line about Nodes", func() bool {
		return w.logLine("a permission is missing", "resource=nodes", "topology hints are ignored")
	})
	a.forbid("list nodes", false)
	a.forbid("watch nodes", false)
	w.await("the Node", func() bool { return w.objects["Node /self"] != nil })
}

// TestNoPod: a missing Pod is logged once.
func TestNoPod(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, inPod)
	w.awaitNames(filled...)
	w.await("a line", func() bool { return w.logLine("is on no Node", "topology hints are ignored") })
}
