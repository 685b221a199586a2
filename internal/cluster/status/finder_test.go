package status

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/test/clienttest"
)

var publish = types.NamespacedName{Namespace: "headgate", Name: "web"}

func service(kind corev1.ServiceType, edit func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: publish.Namespace, Name: publish.Name},
		Spec:       corev1.ServiceSpec{Type: kind, ClusterIP: "10.96.0.1"},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func TestServiceAddresses(t *testing.T) {
	externalIPs := func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.9", "192.0.2.8"} }
	for _, c := range []struct {
		about   string
		service *corev1.Service
		want    string
	}{
		{"ExternalName", service(corev1.ServiceTypeExternalName, func(s *corev1.Service) { s.Spec.ExternalName = "lb.example.com" }), "lb.example.com"},
		{"ClusterIP", service(corev1.ServiceTypeClusterIP, externalIPs), "10.96.0.1"},
		{"headless", service(corev1.ServiceTypeClusterIP, func(s *corev1.Service) { s.Spec.ClusterIP = "None" }), "headless"},
		{"NodePort", service(corev1.ServiceTypeNodePort, nil), "10.96.0.1"},
		{"NodePort with external IPs", service(corev1.ServiceTypeNodePort, externalIPs), "192.0.2.8,192.0.2.9"},
		{"LoadBalancer without an address yet", service(corev1.ServiceTypeLoadBalancer, nil), ""},
		{"LoadBalancer", service(corev1.ServiceTypeLoadBalancer, func(s *corev1.Service) {
			externalIPs(s)
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}, {IP: "192.0.2.10"}, {IP: "192.0.2.9"}}
		}), "192.0.2.10,192.0.2.8,192.0.2.9,lb.example.com"},
	} {
		f := newFinder(clienttest.Of(fake.NewClientset(c.service)), AddressSource{Service: publish})
		if got := found(t, f); got != c.want && (c.want != "headless" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
	f := newFinder(clienttest.Of(fake.NewClientset()), AddressSource{Service: publish})
	if got := found(t, f); got != "there is no Service headgate/web" {
		t.Errorf("without the Service: %q", got)
	}
}

// found returns the addresses, or the error.
func found(t *testing.T, f *finder) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go f.follow(ctx)
	list, err := f.find(ctx)
	if err != nil {
		return err.Error()
	}
	return list.String()
}

func TestAddressesAsGiven(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.20,lb.example.com, 2001:DB8::5,": "192.0.2.20,2001:db8::5,lb.example.com",
		"192.0.2.1,192.0.2.1":                     "192.0.2.1",
		"a b":                                     `invalid address "a b": must be`,
		"LB.example.com":                          `invalid address "LB.example.com": must be`,
		"fe80::1%eth0":                            `invalid address "fe80::1%eth0": must be`,
	} {
		list, err := ParseAddresses(text)
		got := fmt.Sprint(err)
		if err == nil {
			got = found(t, newFinder(clienttest.Of(fake.NewClientset()), AddressSource{Addresses: list, Service: publish}))
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func pod(name, node string, ready bool, labels ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: name, Labels: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		p.Labels[key] = value
	}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func node(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, text := range addresses {
		kind, value, _ := strings.Cut(text, "=")
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: value})
	}
	return n
}

// selecting makes the fake apply the selectors of fields, which it ignores.
func selecting(cluster *fake.Clientset) *fake.Clientset {
	cluster.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		restrictions := action.(clienttesting.ListAction).GetListRestrictions()
		if restrictions.Fields.Empty() {
			return false, nil, nil
		}
		all, err := cluster.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		var list corev1.PodList
		for _, p := range all.(*corev1.PodList).Items {
			if restrictions.Fields.Matches(fields.Set{"metadata.name": p.Name, "spec.serviceAccountName": p.Spec.ServiceAccountName}) {
				list.Items = append(list.Items, p)
			}
		}
		return true, &list, nil
	})
	return cluster
}

func TestNodeAddresses(t *testing.T) {
	itself := types.NamespacedName{Namespace: "headgate", Name: "self"}
	nodes := []runtime.Object{
		node("both", "InternalIP=10.0.0.1", "ExternalIP=192.0.2.1", "ExternalIP=192.0.2.99"),
		node("inner", "Hostname=inner", "InternalIP=10.0.0.2"),
		node("none", "Hostname=none"),
	}
	for _, c := range []struct {
		about    string
		pods     []runtime.Object
		internal bool
		want     string
		others   string
	}{
		{"alone", []runtime.Object{pod("self", "both", true, "app=headgate")}, false, "192.0.2.1", "false"},
		{"internal", []runtime.Object{pod("self", "both", true, "app=headgate")}, true, "10.0.0.1", "false"},
		{"no external address", []runtime.Object{pod("self", "inner", true, "app=headgate")}, false, "10.0.0.2", "false"},
		{"two nodes", []runtime.Object{pod("self", "both", true, "app=headgate"), pod("two", "inner", true, "app=headgate")}, false, "10.0.0.2,192.0.2.1", "true"},
		{"two on one node", []runtime.Object{pod("self", "both", true, "app=headgate"), pod("two", "both", true, "app=headgate")}, false, "192.0.2.1", "true"},
		{"one not ready", []runtime.Object{pod("self", "both", true, "app=headgate"), pod("two", "inner", false, "app=headgate")}, false, "192.0.2.1", "true"},
		{"an older version", []runtime.Object{
			pod("self", "both", true, "app=headgate", "pod-template-hash=2"), pod("two", "inner", true, "app=headgate", "pod-template-hash=1"),
		}, false, "10.0.0.2,192.0.2.1", "true"},
		{"an older version of the chart", []runtime.Object{
			pod("self", "both", true, "app=headgate", "helm.sh/chart=headgate-2", "app.kubernetes.io/version=v2"),
			pod("two", "inner", true, "app=headgate", "helm.sh/chart=ingress-nginx-1", "app.kubernetes.io/version=v1"),
		}, false, "10.0.0.2,192.0.2.1", "true"},
		{"another application", []runtime.Object{pod("self", "both", true, "app=headgate"), pod("two", "inner", true, "app=other")}, false, "192.0.2.1", "false"},
		{"without labels", []runtime.Object{pod("self", "both", true), pod("two", "inner", true)}, false, "192.0.2.1", "false"},
		{"not ready", []runtime.Object{pod("self", "both", false, "app=headgate")}, false, "none of 1 pods", "none of 1 pods"},
		{"no address", []runtime.Object{pod("self", "none", true, "app=headgate")}, false, "none of 1 pods", "none of 1 pods"},
		{"no pod", nil, false, "the pod headgate/self, given", "the pod headgate/self, given"},
		{"no node", []runtime.Object{pod("self", "gone", true, "app=headgate")}, false, "read the node of pod self", "read the node"},
	} {
		f := newFinder(clienttest.Of(selecting(fake.NewClientset(append(nodes, c.pods...)...))), AddressSource{Pod: itself, Internal: c.internal})
		if got := found(t, f); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
		others, err := f.others(t.Context())
		got := fmt.Sprint(others)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.others) {
			t.Errorf("%s: other replicas: %s, want %s", c.about, got, c.others)
		}
	}
}

// edge is a pod of an edge.
func edge(namespace, name, account, node string, ready bool) *corev1.Pod {
	p := pod(name, node, ready, "app=edge")
	p.Namespace, p.Spec.ServiceAccountName = namespace, account
	return p
}

// ended is a pod that stays after its end.
func ended(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase = phase
	return p
}

// TestEdges: with edges apart, addresses are those of their nodes, and there are others while there is one of them.
func TestEdges(t *testing.T) {
	itself := types.NamespacedName{Namespace: "headgate", Name: "self"}
	accounts := []types.NamespacedName{{Namespace: "headgate", Name: "edge"}, {Namespace: "shop", Name: "edge"}}
	objects := []runtime.Object{
		node("a", "InternalIP=10.0.0.1", "ExternalIP=192.0.2.1"), node("b", "InternalIP=10.0.0.2"), node("c", "InternalIP=10.0.0.3"),
		pod("self", "c", true, "app=headgate"),
	}
	const missing = "none of 0 pods of edges is ready"
	for _, c := range []struct {
		about        string
		pods         []runtime.Object
		service      types.NamespacedName
		want, others string
	}{
		{"of two accounts", []runtime.Object{edge("headgate", "one", "edge", "a", true), edge("shop", "two", "edge", "b", true)}, types.NamespacedName{}, "10.0.0.2,192.0.2.1", "true"},
		{"not ready", []runtime.Object{edge("headgate", "one", "edge", "a", true), edge("headgate", "two", "edge", "b", false)}, types.NamespacedName{}, "192.0.2.1", "true"},
		{"of other accounts", []runtime.Object{edge("headgate", "one", "default", "a", true), edge("other", "two", "edge", "b", true)}, types.NamespacedName{}, missing, "false"},
		{
			"ended",
			[]runtime.Object{ended(edge("headgate", "one", "edge", "a", true), corev1.PodFailed), ended(edge("headgate", "two", "edge", "b", false), corev1.PodSucceeded)},
			types.NamespacedName{}, "none of 2 pods of edges is ready", "false",
		},
		{"no edge", nil, types.NamespacedName{}, missing, "false"},
		{"no edge, but a control", []runtime.Object{pod("other", "b", true, "app=headgate")}, types.NamespacedName{}, missing, "true"},
		{"no edge, and a Service", nil, publish, "10.96.0.1", "false"},
		{"an edge, and a Service", []runtime.Object{edge("shop", "one", "edge", "a", false)}, publish, "10.96.0.1", "true"},
	} {
		cluster := selecting(fake.NewClientset(append(append(objects, service(corev1.ServiceTypeClusterIP, nil)), c.pods...)...))
		f := newFinder(clienttest.Of(cluster), AddressSource{Service: c.service, Edges: accounts, Pod: itself})
		if got := found(t, f); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
		others, err := f.others(t.Context())
		if got := fmt.Sprint(others); err != nil || got != c.others {
			t.Errorf("%s: other replicas: %s, %v, want %s", c.about, got, err, c.others)
		}
	}
}
