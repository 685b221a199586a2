package e2e_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/gatetest"
	"github.com/headgate/headgate/test/echo"
)

// must fails the test if a write to the API server failed.
func must[T any](g *gate) func(T, error) T {
	return func(object T, err error) T {
		g.t.Helper()
		if err != nil {
			g.t.Fatal(err)
		}
		return object
	}
}

// createClass creates an IngressClass that ends with the test.
func (g *gate) createClass(name, controller string) {
	g.t.Helper()
	classes := g.cluster.Client().NetworkingV1().IngressClasses()
	must[*networkingv1.IngressClass](g)(classes.Create(g.t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
	}, metav1.CreateOptions{}))
	// It may be gone by then.
	g.t.Cleanup(func() { _ = classes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// ingress describes an Ingress of the gate's class for one path of one host. A
// Secret, if one is named, has the host's certificate.
func (g *gate) ingress(name, host, path, service, secret string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	ing := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.class, Name: name},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &g.class,
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: path, PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: service, Port: networkingv1.ServiceBackendPort{Number: 80},
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

func (g *gate) createIngress(ing *networkingv1.Ingress) {
	g.t.Helper()
	ingresses := g.cluster.Client().NetworkingV1().Ingresses(ing.Namespace)
	must[*networkingv1.Ingress](g)(ingresses.Create(g.t.Context(), ing, metav1.CreateOptions{}))
}

func (g *gate) updateIngress(ing *networkingv1.Ingress) {
	g.t.Helper()
	ingresses := g.cluster.Client().NetworkingV1().Ingresses(ing.Namespace)
	must[*networkingv1.Ingress](g)(ingresses.Update(g.t.Context(), ing, metav1.UpdateOptions{}))
}

func (g *gate) deleteIngress(name string) {
	g.t.Helper()
	if err := g.cluster.Client().NetworkingV1().Ingresses(g.class).Delete(g.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) tlsSecret(name string, pair gatetest.KeyPair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.class, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(pair.Certificate), corev1.TLSPrivateKeyKey: []byte(pair.Key)},
	}
}

// createSecret creates a TLS Secret with a new certificate for a host.
func (g *gate) createSecret(name, host string) gatetest.KeyPair {
	g.t.Helper()
	pair := gatetest.NewKeyPair(g.t, host, host)
	secrets := g.cluster.Client().CoreV1().Secrets(g.class)
	must[*corev1.Secret](g)(secrets.Create(g.t.Context(), g.tlsSecret(name, pair), metav1.CreateOptions{}))
	return pair
}

// renewSecret puts a new certificate into a TLS Secret.
func (g *gate) renewSecret(name, host string) gatetest.KeyPair {
	g.t.Helper()
	pair := gatetest.NewKeyPair(g.t, host, host)
	secrets := g.cluster.Client().CoreV1().Secrets(g.class)
	must[*corev1.Secret](g)(secrets.Update(g.t.Context(), g.tlsSecret(name, pair), metav1.UpdateOptions{}))
	return pair
}

// An endpoint is a backend in the test process, at an address of the cluster's.
type endpoint struct {
	address string
	port    int32
}

// startEndpoint starts a backend that answers with its name.
func (g *gate) startEndpoint(name string) endpoint {
	g.t.Helper()
	listener := must[net.Listener](g)(g.cluster.Listen("tcp", "10.245.0.1:0"))
	server := &http.Server{Handler: echo.Handler(name)}
	go func() {
		// It ends with the test.
		_ = server.Serve(listener)
	}()
	g.t.Cleanup(func() { server.Close() })
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		g.t.Fatal(err)
	}
	return endpoint{host, int32(must[int](g)(strconv.Atoi(port)))}
}

// createService creates a Service without pods. setEndpoint gives it one.
func (g *gate) createService(name string) {
	g.t.Helper()
	services := g.cluster.Client().CoreV1().Services(g.class)
	must[*corev1.Service](g)(services.Create(g.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.class, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{}))
}

func (g *gate) slice(service string, at endpoint) *discoveryv1.EndpointSlice {
	port, protocol := "http", corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.class, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.address}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &at.port, Protocol: &protocol}},
	}
}

func (g *gate) createEndpoint(service string, at endpoint) {
	g.t.Helper()
	slices := g.cluster.Client().DiscoveryV1().EndpointSlices(g.class)
	must[*discoveryv1.EndpointSlice](g)(slices.Create(g.t.Context(), g.slice(service, at), metav1.CreateOptions{}))
}

func (g *gate) changeEndpoint(service string, at endpoint) {
	g.t.Helper()
	if err := g.tryChangeEndpoint(g.t.Context(), service, at); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) tryChangeEndpoint(ctx context.Context, service string, at endpoint) error {
	_, err := g.cluster.Client().DiscoveryV1().EndpointSlices(g.class).Update(ctx, g.slice(service, at), metav1.UpdateOptions{})
	return err
}

// createBackend creates a Service with an endpoint that answers with its name.
func (g *gate) createBackend(service string) {
	g.t.Helper()
	g.createService(service)
	g.createEndpoint(service, g.startEndpoint(service))
}

// host is a host name that no other test has.
func (g *gate) host(name string) string {
	return name + "." + strings.ReplaceAll(g.class, ".", "-") + ".invalid"
}
