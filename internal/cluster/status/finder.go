package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/headgate/headgate/internal/cluster/client"
)

// An AddressSource is where addresses come from: the first of Addresses, Service,
// Edges and Pod that is set.
type AddressSource struct {
	Addresses Addresses
	// Service is a Service whose own addresses are used. It needs the verbs list
	// and watch on the Service.
	Service types.NamespacedName
	// Pod is the pod of this process: the addresses are those of the nodes with
	// ready replicas. It needs the verbs list on the pods of its namespace and get
	// on nodes. It is also used to find other replicas, with any source of addresses;
	// without it, no other replicas are known.
	Pod types.NamespacedName
	// Edges are the ServiceAccounts of the pods that clients connect to, if those are not replicas of this process:
	// the addresses are those of their nodes. It needs the verb list on the pods of their namespaces.
	Edges []types.NamespacedName
	// Internal selects the nodes' internal addresses, even if they have external
	// ones.
	Internal bool
}

// Known reports whether there is a source.
func (p AddressSource) Known() bool {
	return len(p.Addresses) > 0 || p.Service.Name != "" || len(p.Edges) > 0 || p.Pod.Name != ""
}

// A finder finds the addresses, for one term.
type finder struct {
	client *client.Clients
	source AddressSource
	// changed receives when the addresses may have changed.
	changed chan struct{}
	// service follows the Service whose addresses are used; nil if there is none.
	service cache.SharedIndexInformer
}

func newFinder(clients *client.Clients, source AddressSource) *finder {
	f := &finder{client: clients, source: source, changed: make(chan struct{}, 1)}
	if len(source.Addresses) > 0 || source.Service.Name == "" {
		return f
	}
	services, one := clients.Services(source.Service.Namespace), fields.OneTermEqualSelector(metav1.ObjectNameField, source.Service.Name).String()
	f.service = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			return services.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			return services.Watch(ctx, options)
		},
	}, services), &corev1.Service{}, 0, nil)
	change := func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	if _, err := f.service.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { change() }, UpdateFunc: func(any, any) { change() }, DeleteFunc: func(any) { change() },
	}); err != nil {
		panic("status: " + err.Error()) // it has not run yet
	}
	return f
}

// follow follows the Service, if there is one, until ctx ends.
func (f *finder) follow(ctx context.Context) {
	if f.service != nil {
		f.service.RunWithContext(ctx)
	}
}

func (f *finder) find(ctx context.Context) (Addresses, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	switch {
	case len(f.source.Addresses) > 0:
		return f.source.Addresses, nil
	case f.service != nil:
		return f.ofService(ctx)
	case len(f.source.Edges) > 0:
		return f.ofNodes(ctx, f.edges, "of edges")
	case f.source.Pod.Name != "":
		return f.ofNodes(ctx, f.replicas, "with the labels of "+f.source.Pod.String())
	}
	return nil, errors.New("no addresses are configured")
}

func (f *finder) ofService(ctx context.Context) (Addresses, error) {
	name := f.source.Service
	if !cache.WaitForCacheSync(ctx.Done(), f.service.HasSynced) {
		return nil, fmt.Errorf("the Service %s has not been read yet", name)
	}
	object, found, err := f.service.GetStore().GetByKey(name.String())
	service, ok := object.(*corev1.Service)
	if err != nil || !found || !ok {
		return nil, fmt.Errorf("there is no Service %s", name)
	}
	return serviceAddresses(service)
}

// serviceAddresses returns the addresses of a Service, by its type.
func serviceAddresses(service *corev1.Service) (Addresses, error) {
	var list []address
	switch service.Spec.Type {
	case corev1.ServiceTypeExternalName:
		list = append(list, address{hostname: service.Spec.ExternalName})
	case corev1.ServiceTypeLoadBalancer:
		for _, e := range service.Status.LoadBalancer.Ingress {
			list = append(list, address{e.Hostname, e.IP})
		}
	}
	if kind := service.Spec.Type; kind == corev1.ServiceTypeLoadBalancer || kind == corev1.ServiceTypeNodePort {
		for _, ip := range service.Spec.ExternalIPs {
			list = append(list, address{ip: ip})
		}
	}
	if len(list) > 0 || service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return newAddresses(list), nil
	}
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		return newAddresses([]address{{ip: ip}}), nil
	}
	return nil, fmt.Errorf("the Service %s/%s is headless: it has no address", service.Namespace, service.Name)
}

// ofNodes returns one address of each node with a ready pod of a list. which is the list in words.
func (f *finder) ofNodes(ctx context.Context, list func(context.Context) ([]corev1.Pod, error), which string) (Addresses, error) {
	pods, err := list(ctx)
	if err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	var found []address
	for _, pod := range pods {
		if !isReady(&pod) || nodes[pod.Spec.NodeName] {
			continue
		}
		nodes[pod.Spec.NodeName] = true
		node, err := f.client.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the node of pod %s: %w", pod.Name, err)
		}
		if ip := nodeAddress(node, f.source.Internal); ip != "" {
			found = append(found, address{ip: ip})
		}
	}
	if len(found) == 0 {
		// This pod or an edge runs, and it or another one is about to become ready.
		return nil, fmt.Errorf("none of %d pods %s is ready on a node with an address", len(pods), which)
	}
	return newAddresses(found), nil
}

func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func nodeAddress(node *corev1.Node, internal bool) string {
	kinds := []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP}
	if internal {
		kinds = kinds[1:]
	}
	for _, kind := range kinds {
		for _, a := range node.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
	}
	return ""
}

// others reports whether there are other replicas: an edge, or more than one address if no pods are known as edges, or
// another pod of the same application.
func (f *finder) others(ctx context.Context) (bool, error) {
	found, err := f.clientsConnect(ctx)
	if err != nil || found || f.source.Pod.Name == "" {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	pods, err := f.replicas(ctx)
	return len(pods) > 1, err
}

// clientsConnect reports whether clients connect to others than this process, as far as is known without its replicas.
func (f *finder) clientsConnect(ctx context.Context) (bool, error) {
	if len(f.source.Edges) == 0 {
		found, err := f.find(ctx)
		return len(found) > 1, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	pods, err := f.edges(ctx)
	return slices.ContainsFunc(pods, mayServe), err
}

// mayServe is false for a pod that has ended. One that was evicted stays, for as long as nothing removes it.
func mayServe(pod corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// edges returns the pods that clients connect to.
func (f *finder) edges(ctx context.Context) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for _, account := range f.source.Edges {
		pods, err := f.client.Pods(account.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.serviceAccountName", account.Name).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("list the pods of the ServiceAccount %s: %w", account, err)
		}
		all = append(all, pods.Items...)
	}
	return all, nil
}

// ofVersion are labels that differ between pods of one application. Charts give pods those of
// the chart's and the program's version: an upgrade changes them.
var ofVersion = []string{
	"pod-template-hash", "controller-revision-hash", "pod-template-generation",
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
	"helm.sh/chart", "app.kubernetes.io/version",
}

// replicas returns the pods of the application of this process's pod, including
// that pod.
func (f *finder) replicas(ctx context.Context) ([]corev1.Pod, error) {
	pods := f.client.Pods(f.source.Pod.Namespace)
	itself, err := pods.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, f.source.Pod.Name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", f.source.Pod, err)
	}
	if len(itself.Items) == 0 {
		return nil, fmt.Errorf("the pod %s, given by POD_NAMESPACE and POD_NAME, does not exist", f.source.Pod)
	}
	selected := maps.Clone(itself.Items[0].Labels)
	maps.DeleteFunc(selected, func(label, _ string) bool { return slices.Contains(ofVersion, label) })
	if len(selected) == 0 {
		return itself.Items[:1], nil
	}
	all, err := pods.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selected).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods with the labels of %s: %w", f.source.Pod, err)
	}
	return all.Items, nil
}
