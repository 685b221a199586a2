package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// workloads are the Deployments and DaemonSets, with what both have.
func workloads(t *testing.T, r rendered) (list []appsv1.Deployment) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(r.objects)) {
		if object := r.objects[key]; object.GetKind() == "Deployment" || object.GetKind() == "DaemonSet" {
			var w appsv1.Deployment
			convert(t, object, &w)
			list = append(list, w)
		}
	}
	return list
}

// part is what a workload runs: control, edge, all of Headgate, or another program.
func part(w appsv1.Deployment) string {
	args := w.Spec.Template.Spec.Containers[0].Args
	switch {
	case len(args) < 2 || args[0] != "/nginx-ingress-controller":
		return "other"
	case strings.HasPrefix(args[1], "-"):
		return "all"
	}
	return args[1]
}

// splits are the renderings with control and edges apart.
func splits(t *testing.T) []base {
	t.Helper()
	list := slices.DeleteFunc(bases(t), func(b base) bool { return leaf([]string{"controller", "mode"}).of(b.values) != "split" })
	if len(list) < 5 {
		t.Fatalf("%d archives have controller.mode=split, want 5 at least", len(list))
	}
	return list
}

// TestEdgesHaveNoKey: an edge has no role, no token that API servers accept and no Secret of a control, and its
// ServiceAccount is that of no other pods.
func TestEdgesHaveNoKey(t *testing.T) {
	for _, b := range splits(t) {
		objects := slices.Collect(maps.Values(b.result.objects))
		users := map[string]int{}
		list := workloads(t, b.result)
		for _, w := range list {
			users[w.Spec.Template.Spec.ServiceAccountName]++
		}
		for _, w := range list {
			if part(w) != "edge" {
				continue
			}
			pod := w.Spec.Template.Spec
			if list := grants(t, objects, pod.ServiceAccountName); len(list) > 0 {
				t.Errorf("%s: %s may do %v", b.name, w.Name, list)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("%s: %s has the token of its ServiceAccount", b.name, w.Name)
			}
			if n := users[pod.ServiceAccountName]; n != 1 || b.result.objects["ServiceAccount "+w.Namespace+"/"+pod.ServiceAccountName] == nil {
				t.Errorf("%s: %s has the ServiceAccount %s, which %d workloads have", b.name, w.Name, pod.ServiceAccountName, n)
			}
			for _, volume := range pod.Volumes {
				checkSource(t, b.name+": "+w.Name, volume)
			}
		}
	}
}

// checkSource checks that a volume of an edge has no other key than that of the edge.
func checkSource(t *testing.T, at string, volume corev1.Volume) {
	t.Helper()
	if volume.Secret != nil && volume.Name != "headgate-control" {
		t.Errorf("%s mounts the Secret %s", at, volume.Secret.SecretName)
	}
	if volume.Projected == nil {
		return
	}
	for _, source := range volume.Projected.Sources {
		if token := source.ServiceAccountToken; token != nil && token.Audience != "headgate-control" {
			t.Errorf("%s has a token for %q", at, token.Audience)
		}
		if source.Secret != nil {
			t.Errorf("%s mounts the Secret %s", at, source.Secret.Name)
		}
	}
}

// TestServicesOfParts: a Service leads to the pods with its ports, and to no others. That with the metrics leads to
// all parts.
func TestServicesOfParts(t *testing.T) {
	for _, b := range splits(t) {
		for _, object := range b.result.objects {
			if object.GetKind() != "Service" {
				continue
			}
			var service corev1.Service
			convert(t, object, &service)
			var want []string
			switch target := service.Spec.Ports[0].TargetPort.String(); target {
			case "edges", "webhook":
				want = []string{"control"}
			case "metrics":
				want = []string{"control", "edge"}
			default:
				want = []string{"edge"}
			}
			got := map[string]int{}
			for _, w := range workloads(t, b.result) {
				if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(w.Spec.Template.Labels)) {
					got[part(w)]++
				}
			}
			if parts := slices.Sorted(maps.Keys(got)); !slices.Equal(parts, want) {
				t.Errorf("%s: the Service %s leads to %v, want %v", b.name, service.Name, parts, want)
			}
			if clients := want[0] == "edge"; clients && got["edge"] != 1 {
				t.Errorf("%s: the Service %s leads to edges of %d groups", b.name, service.Name, got["edge"])
			}
		}
	}
}

// TestSelectorsDiffer: no workload selects pods of another one.
func TestSelectorsDiffer(t *testing.T) {
	for _, b := range splits(t) {
		list := workloads(t, b.result)
		for _, w := range list {
			for _, other := range list {
				if selector := labels.SelectorFromSet(w.Spec.Selector.MatchLabels); (w.Name == other.Name) != selector.Matches(labels.Set(other.Spec.Template.Labels)) {
					t.Errorf("%s: %s selects pods of %s, or not its own", b.name, w.Name, other.Name)
				}
			}
		}
	}
}

// TestUpgradeToSplit: edges replace the pods with all of Headgate: Helm updates the workload and the Service for
// clients, and replaces neither. Nothing goes that the old pods need while they serve.
func TestUpgradeToSplit(t *testing.T) {
	c, r := load(t), release{"headgate", "ingress"}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		values := with(nil, leaf{"controller", "kind"}, kind)
		before, err := render(c, r, values)
		if err != nil {
			t.Fatal(err)
		}
		after, err := render(c, r, with(values, leaf{"controller", "mode"}, "split"))
		if err != nil {
			t.Fatal(err)
		}
		for key := range before.objects {
			if after.objects[key] == nil {
				t.Errorf("%s: %s goes", kind, key)
			}
		}
		old, edges := controllerOf(t, before), controllerOf(t, after)
		if part(edges) != "edge" || old.Name != edges.Name || !maps.Equal(old.Spec.Selector.MatchLabels, edges.Spec.Selector.MatchLabels) {
			t.Errorf("%s: %s becomes %s %s, with other labels", kind, old.Name, part(edges), edges.Name)
		}
		const service = "Service ingress/headgate-controller"
		if before.text[service] != after.text[service] {
			t.Errorf("%s: the Service for clients changes", kind)
		}
	}
}
