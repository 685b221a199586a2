package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A Place says where addresses come from: the first of Addresses, Service and
// Pod that is set.
type Place struct {
	// Addresses are IP addresses and DNS names.
	Addresses []string
	// Service is one whose own addresses count. It takes the verbs list and
	// watch on it.
	Service types.NamespacedName
	// Pod is the one that this runs in: the addresses of the nodes count where
	// it and its like run and are ready. It takes the verbs list on the pods
	// of its namespace and get on nodes. Whatever the addresses come from, its
	// like are the other replicas; without it no others are known.
	Pod types.NamespacedName
	// Internal takes the nodes' internal addresses, where the external ones
	// would be taken if there are any.
	Internal bool
}

// Known tells whether there is a place.
func (p Place) Known() bool { return len(p.Addresses) > 0 || p.Service.Name != "" || p.Pod.Name != "" }

// A finder finds the addresses.
type finder struct {
	client kubernetes.Interface
	place  Place
	// changed says that it is time to ask again.
	changed chan struct{}
	// service follows the Service of the place, if there is one.
	service atomic.Pointer[following]
}

// A following is one Service, and its changes.
type following struct {
	services cache.Store
	informer cache.Controller
}

func newFinder(client kubernetes.Interface, place Place) *finder {
	return &finder{client: client, place: place, changed: make(chan struct{}, 1)}
}

// byService tells whether the addresses are those of a Service.
func (f *finder) byService() bool { return len(f.place.Addresses) == 0 && f.place.Service.Name != "" }

// begin makes follow and find ready for a new term.
func (f *finder) begin() {
	if !f.byService() {
		return
	}
	services := f.client.CoreV1().Services(f.place.Service.Namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, f.place.Service.Name).String()
	change := func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	var now following
	now.services, now.informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = only
				return services.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = only
				return services.Watch(ctx, options)
			},
		}, f.client),
		ObjectType: &corev1.Service{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { change() }, UpdateFunc: func(any, any) { change() }, DeleteFunc: func(any) { change() },
		},
	})
	f.service.Store(&now)
}

// follow follows the Service, if there is one, until ctx ends.
func (f *finder) follow(ctx context.Context) {
	if f.byService() {
		f.service.Load().informer.RunWithContext(ctx)
	}
}

func (f *finder) find(ctx context.Context) (addresses, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	switch {
	case len(f.place.Addresses) > 0:
		return parseAll(f.place.Addresses)
	case f.byService():
		return f.ofService(ctx)
	case f.place.Pod.Name != "":
		return f.ofNodes(ctx)
	}
	return nil, errors.New("nothing says where they come from")
}

func parseAll(texts []string) (addresses, error) {
	var list []address
	for _, text := range texts {
		one, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return newAddresses(list), nil
}

func (f *finder) ofService(ctx context.Context) (addresses, error) {
	name, following := f.place.Service.String(), f.service.Load()
	if !cache.WaitForCacheSync(ctx.Done(), following.informer.HasSynced) {
		return nil, fmt.Errorf("the Service %s was not read yet", name)
	}
	value, found, err := following.services.GetByKey(name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("there is no Service %s", name)
	}
	service, ok := value.(*corev1.Service)
	if !ok {
		return nil, fmt.Errorf("the Service %s is a %T", name, value)
	}
	return serviceAddresses(service)
}

// serviceAddresses are those at which a Service can be reached, by its type.
func serviceAddresses(service *corev1.Service) (addresses, error) {
	var list []address
	external := func() {
		for _, ip := range service.Spec.ExternalIPs {
			list = append(list, address{ip: ip})
		}
	}
	switch service.Spec.Type {
	case corev1.ServiceTypeExternalName:
		list = append(list, address{hostname: service.Spec.ExternalName})
	case corev1.ServiceTypeLoadBalancer:
		for _, e := range service.Status.LoadBalancer.Ingress {
			list = append(list, address{e.Hostname, e.IP})
		}
		external()
	case corev1.ServiceTypeNodePort:
		external()
	}
	if len(list) > 0 || service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return newAddresses(list), nil
	}
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		return newAddresses([]address{{ip: ip}}), nil
	}
	return nil, fmt.Errorf("the Service %s/%s is headless: it has no address", service.Namespace, service.Name)
}

// ofNodes are the addresses of the nodes on which a replica is ready, one of
// each.
func (f *finder) ofNodes(ctx context.Context) (addresses, error) {
	pods, err := f.replicas(ctx)
	if err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	var list []address
	for _, pod := range pods {
		if !isReady(&pod) || nodes[pod.Spec.NodeName] {
			continue
		}
		nodes[pod.Spec.NodeName] = true
		node, err := f.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the node of pod %s: %w", pod.Name, err)
		}
		if ip := nodeAddress(node, f.place.Internal); ip != "" {
			list = append(list, address{ip: ip})
		}
	}
	if len(list) == 0 {
		// This pod runs: what is not ready yet is so soon.
		return nil, fmt.Errorf("none of %d pods like %s is ready on a node with an address", len(pods), f.place.Pod)
	}
	return newAddresses(list), nil
}

func isReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func nodeAddress(node *corev1.Node, internal bool) string {
	first := func(kind corev1.NodeAddressType) string {
		for _, a := range node.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
		return ""
	}
	if ip := first(corev1.NodeExternalIP); ip != "" && !internal {
		return ip
	}
	return first(corev1.NodeInternalIP)
}

// others tells whether another replica serves at the addresses: more than one
// address, or another pod of the same application, says so.
func (f *finder) others(ctx context.Context) (bool, error) {
	found, err := f.find(ctx)
	if err != nil || len(found) > 1 || f.place.Pod.Name == "" {
		return len(found) > 1, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	pods, err := f.replicas(ctx)
	return len(pods) > 1, err
}

// ofVersion are labels that tell apart pods of one application.
var ofVersion = []string{
	"pod-template-hash", "controller-revision-hash", "pod-template-generation",
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
}

// replicas are the pods of the application that this one's pod is of, itself
// among them.
func (f *finder) replicas(ctx context.Context) ([]corev1.Pod, error) {
	pods := f.client.CoreV1().Pods(f.place.Pod.Namespace)
	itself, err := pods.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, f.place.Pod.Name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", f.place.Pod, err)
	}
	if len(itself.Items) == 0 {
		return nil, fmt.Errorf("there is no pod %s, which POD_NAMESPACE and POD_NAME name", f.place.Pod)
	}
	selected := maps.Clone(itself.Items[0].Labels)
	for _, label := range ofVersion {
		delete(selected, label)
	}
	if len(selected) == 0 {
		return itself.Items[:1], nil
	}
	all, err := pods.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selected).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods like %s: %w", f.place.Pod, err)
	}
	return all.Items, nil
}
