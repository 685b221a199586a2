package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const endpointsEach = 5

// A layout says how the objects of a cluster are spread.
type layout struct {
	// perNamespace is how many Ingresses share a namespace, 0 for all of them.
	perNamespace int
	// certificateEvery is how many Ingresses have one with a certificate among them.
	certificateEvery int
}

// namespaceOf is that of the i-th Ingress, and of what belongs to it.
func (l layout) namespaceOf(i int) string {
	if l.perNamespace == 0 {
		return namespace
	}
	return fmt.Sprintf("%s-%03d", namespace, i/l.perNamespace)
}

// certificates are those of so many Ingresses.
func (l layout) certificates(ingresses int) int {
	return (ingresses + l.certificateEvery - 1) / l.certificateEvery
}

func serviceName(i int) string { return fmt.Sprintf("s-%05d", i) }

func meta(name string) metav1.ObjectMeta { return metaIn(namespace, name) }

func metaIn(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// createBasics creates what all the others need.
func (k *kube) createBasics(ctx context.Context) error {
	if err := k.createNamespace(ctx, namespace); err != nil {
		return err
	}
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
		Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	}
	if _, err := k.client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	options := &corev1.ConfigMap{
		ObjectMeta: meta("headgate"),
		Data:       map[string]string{"worker-processes": "1", "disable-access-log": "true", "ssl-redirect": "false"},
	}
	_, err := k.client.CoreV1().ConfigMaps(namespace).Create(ctx, options, metav1.CreateOptions{})
	return err
}

func (k *kube) createNamespace(ctx context.Context, name string) error {
	_, err := k.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// fill creates objects until there are so many Ingresses.
func (k *kube) fill(ctx context.Context, ingresses int) error {
	for ; k.perNamespace > 0 && k.namespaces*k.perNamespace < ingresses; k.namespaces++ {
		if err := k.createNamespace(ctx, k.namespaceOf(k.namespaces*k.perNamespace)); err != nil {
			return err
		}
	}
	err := parallel(ctx, k.created, ingresses, func(ctx context.Context, i int) error {
		in := k.namespaceOf(i)
		service := &corev1.Service{
			ObjectMeta: metaIn(in, serviceName(i)),
			// Addresses of Services are not measured, and cost the
			// API server a second object each.
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
		if _, err := k.client.CoreV1().Services(in).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return err
		}
		slice := k.slice(i, i*endpointsEach)
		if _, err := k.client.DiscoveryV1().EndpointSlices(in).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
		secret := ""
		if i%k.certificateEvery == 0 {
			secret = serviceName(i)
			pair, err := newCertificate(hostName(i))
			if err != nil {
				return err
			}
			if _, err := k.client.CoreV1().Secrets(in).Create(ctx, tlsSecret(in, secret, pair), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return k.createIngress(ctx, fmt.Sprintf("i-%05d", i), hostName(i), i, secret)
	})
	k.created = max(k.created, ingresses)
	k.fresh = max(k.fresh, ingresses*endpointsEach)
	return err
}

// parallel calls do for every number from begin up to, but not including, end.
func parallel(ctx context.Context, begin, end int, do func(context.Context, int) error) error {
	const callers = 32
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := begin; i < end && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// createIngress serves a host by the i-th Service, from its namespace.
func (k *kube) createIngress(ctx context.Context, name, host string, i int, secret string) error {
	ing := k.ingress(name, host, i, secret)
	_, err := k.client.NetworkingV1().Ingresses(ing.Namespace).Create(ctx, ing, metav1.CreateOptions{})
	return err
}

func (k *kube) ingress(name, host string, i int, secret string) *networkingv1.Ingress {
	prefix, class := networkingv1.PathTypePrefix, "nginx"
	ing := &networkingv1.Ingress{
		ObjectMeta: metaIn(k.namespaceOf(i), name),
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: serviceName(i), Port: networkingv1.ServiceBackendPort{Number: 80},
					}},
				}}},
			}}},
		},
	}
	if secret != "" {
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
	}
	return ing
}

// slice describes the endpoints of a Service: so many addresses from the first
// one on.
func (k *kube) slice(service, first int) *discoveryv1.EndpointSlice {
	port, protocol := "http", corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metaIn(k.namespaceOf(service), serviceName(service)),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &k.endpointPort, Protocol: &protocol}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: serviceName(service)}
	for i := range endpointsEach {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address(first + i)}})
	}
	return slice
}

// address is the i-th of the node's own.
func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", 128+(i+1)>>16, (i+1)>>8&255, (i+1)&255) }

// moveEndpoints gives a Service addresses that none had before, and returns
// them once the API server has acknowledged it.
func (k *kube) moveEndpoints(ctx context.Context, service, first int) (map[string]bool, error) {
	slice := k.slice(service, first)
	_, err := k.client.DiscoveryV1().EndpointSlices(k.namespaceOf(service)).Update(ctx, slice, metav1.UpdateOptions{})
	addresses := map[string]bool{}
	for _, endpoint := range slice.Endpoints {
		addresses[endpoint.Addresses[0]] = true
	}
	return addresses, err
}

// freshAddresses takes addresses for so many Services and returns the first.
func (k *kube) freshAddresses(services int) int {
	first := k.fresh
	k.fresh += services * endpointsEach
	return first
}
