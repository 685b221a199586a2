package e2e_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/test/e2e/clustertest"
	"github.com/headgate/headgate/test/echo"
)

// must fails the test if a write to the API server failed.
func must[T any](h *headgate) func(T, error) T {
	return func(object T, err error) T {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
		return object
	}
}

// createClass creates an IngressClass that ends with the test.
func (h *headgate) createClass(name, controller string) {
	h.t.Helper()
	classes := h.cluster.Client().NetworkingV1().IngressClasses()
	must[*networkingv1.IngressClass](h)(classes.Create(h.t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
	}, metav1.CreateOptions{}))
	// The test may have deleted it.
	h.t.Cleanup(func() { _ = classes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// ingress describes an Ingress of the test's class for one path of one host. A
// Secret, if one is named, has the host's certificate.
func (h *headgate) ingress(name, host, path, service, secret string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	ing := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.class, Name: name},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &h.class,
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

func (h *headgate) createIngress(ing *networkingv1.Ingress) {
	h.t.Helper()
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(ing.Namespace)
	must[*networkingv1.Ingress](h)(ingresses.Create(h.t.Context(), ing, metav1.CreateOptions{}))
}

func (h *headgate) updateIngress(ing *networkingv1.Ingress) {
	h.t.Helper()
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(ing.Namespace)
	must[*networkingv1.Ingress](h)(ingresses.Update(h.t.Context(), ing, metav1.UpdateOptions{}))
}

func (h *headgate) deleteIngress(name string) {
	h.t.Helper()
	if err := h.cluster.Client().NetworkingV1().Ingresses(h.class).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *headgate) tlsSecret(name string, pair headgatetest.KeyPair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.class, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(pair.Certificate), corev1.TLSPrivateKeyKey: []byte(pair.Key)},
	}
}

// createSecret creates a TLS Secret with a new certificate for a host.
func (h *headgate) createSecret(name, host string) headgatetest.KeyPair {
	h.t.Helper()
	pair := headgatetest.NewKeyPair(h.t, host, host)
	secrets := h.cluster.Client().CoreV1().Secrets(h.class)
	must[*corev1.Secret](h)(secrets.Create(h.t.Context(), h.tlsSecret(name, pair), metav1.CreateOptions{}))
	return pair
}

// renewSecret puts a new certificate into a TLS Secret.
func (h *headgate) renewSecret(name, host string) headgatetest.KeyPair {
	h.t.Helper()
	pair := headgatetest.NewKeyPair(h.t, host, host)
	secrets := h.cluster.Client().CoreV1().Secrets(h.class)
	must[*corev1.Secret](h)(secrets.Update(h.t.Context(), h.tlsSecret(name, pair), metav1.UpdateOptions{}))
	return pair
}

// An endpoint is a backend in the test process, at an address of the cluster's.
type endpoint struct {
	address string
	port    int32
}

// startEndpoint starts a backend that answers with its name.
func (h *headgate) startEndpoint(name string) endpoint {
	h.t.Helper()
	listener := must[net.Listener](h)(h.cluster.Listen("tcp", clustertest.LocalAddress(1)+":0"))
	server := &http.Server{Handler: echo.Handler(name)}
	go func() {
		// It ends with the test.
		_ = server.Serve(listener)
	}()
	h.t.Cleanup(func() { server.Close() })
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	return endpoint{host, int32(must[int](h)(strconv.Atoi(port)))}
}

// createService creates a Service without pods. setEndpoint gives it one.
func (h *headgate) createService(name string) {
	h.t.Helper()
	services := h.cluster.Client().CoreV1().Services(h.class)
	must[*corev1.Service](h)(services.Create(h.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.class, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{}))
}

func (h *headgate) slice(service string, at endpoint) *discoveryv1.EndpointSlice {
	port, protocol := "http", corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.class, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.address}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &at.port, Protocol: &protocol}},
	}
}

func (h *headgate) createEndpoint(service string, at endpoint) {
	h.t.Helper()
	slices := h.cluster.Client().DiscoveryV1().EndpointSlices(h.class)
	must[*discoveryv1.EndpointSlice](h)(slices.Create(h.t.Context(), h.slice(service, at), metav1.CreateOptions{}))
}

func (h *headgate) changeEndpoint(service string, at endpoint) {
	h.t.Helper()
	if err := h.tryChangeEndpoint(h.t.Context(), service, at); err != nil {
		h.t.Fatal(err)
	}
}

func (h *headgate) tryChangeEndpoint(ctx context.Context, service string, at endpoint) error {
	_, err := h.cluster.Client().DiscoveryV1().EndpointSlices(h.class).Update(ctx, h.slice(service, at), metav1.UpdateOptions{})
	return err
}

// createBackend creates a Service with an endpoint that answers with its name.
func (h *headgate) createBackend(service string) {
	h.t.Helper()
	h.createService(service)
	h.createEndpoint(service, h.startEndpoint(service))
}

// host is a host name that no other test has.
func (h *headgate) host(name string) string {
	return name + "." + strings.ReplaceAll(h.class, ".", "-") + ".invalid"
}

// createUsers creates a Secret with one user: see known.
func (h *headgate) createUsers(name string) {
	h.t.Helper()
	sum := sha1.Sum([]byte("secret"))
	must[*corev1.Secret](h)(h.cluster.Client().CoreV1().Secrets(h.class).Create(h.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string][]byte{"auth": []byte("user:{SHA}" + base64.StdEncoding.EncodeToString(sum[:]) + "\n")},
	}, metav1.CreateOptions{}))
}

// withUsers asks clients of an Ingress for a password.
func withUsers(ing *networkingv1.Ingress, secret string) *networkingv1.Ingress {
	ing.Annotations = map[string]string{
		"nginx.ingress.kubernetes.io/auth-type": "basic", "nginx.ingress.kubernetes.io/auth-secret": secret,
	}
	return ing
}
