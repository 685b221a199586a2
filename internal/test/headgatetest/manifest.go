package headgatetest

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Decode reads manifests, documents between lines of "---". Objects without a
// namespace get "default".
func Decode(t testing.TB, manifests string) []metav1.Object {
	t.Helper()
	var objects []metav1.Object
	for document := range strings.SplitSeq("\n"+manifests, "\n---") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var kind metav1.TypeMeta
		must(t, yaml.Unmarshal([]byte(document), &kind))
		object := objectOf(kind.Kind)
		if object == nil {
			t.Fatalf("a manifest of kind %q:\n%s", kind.Kind, document)
		}
		must(t, yaml.UnmarshalStrict([]byte(document), object))
		if object.GetNamespace() == "" {
			object.SetNamespace("default")
		}
		if secret, ok := object.(*corev1.Secret); ok {
			fillSecret(secret)
		}
		objects = append(objects, object)
	}
	return objects
}

func objectOf(kind string) metav1.Object {
	switch kind {
	case "Ingress":
		return &networkingv1.Ingress{}
	case "IngressClass":
		return &networkingv1.IngressClass{}
	case "Service":
		return &corev1.Service{}
	case "EndpointSlice":
		return &discoveryv1.EndpointSlice{}
	case "Secret":
		return &corev1.Secret{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	}
	return nil
}

// fillSecret does what the API server does with stringData.
func fillSecret(s *corev1.Secret) {
	for key, text := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}

// Ingress is a manifest that sends a path, and what lies below it, of a host
// to port 80 of a Service. Annotations are "name: value" without the prefix.
func Ingress(name, host, path, service string, annotations ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata:\n  name: %s\n", name)
	if len(annotations) > 0 {
		b.WriteString("  annotations:\n")
	}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, ": ")
		fmt.Fprintf(&b, "    nginx.ingress.kubernetes.io/%s: %q\n", key, value)
	}
	fmt.Fprintf(&b, "spec:\n  rules:\n  - host: %q\n    http:\n      paths:\n"+
		"      - {path: %q, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}\n", host, path, service)
	return b.String()
}

// Service is a Service with port 80 named http.
func Service(name string) string {
	return "---\nkind: Service\napiVersion: v1\nmetadata: {name: " + name + "}\n" +
		"spec: {ports: [{name: http, port: 80}]}\n"
}

// Endpoints are the EndpointSlices of a Service, one for each port, NAME-0, NAME-1 and so
// on in the order of their first endpoints.
func Endpoints(service string, endpoints ...string) string {
	var b bytes.Buffer
	byPort := map[uint16][]string{}
	var ports []uint16
	family := "IPv4"
	for _, e := range endpoints {
		address := netip.MustParseAddrPort(e)
		if address.Addr().Is6() {
			family = "IPv6"
		}
		if byPort[address.Port()] == nil {
			ports = append(ports, address.Port())
		}
		byPort[address.Port()] = append(byPort[address.Port()], address.Addr().String())
	}
	for i, port := range ports {
		fmt.Fprintf(&b, "---\nkind: EndpointSlice\napiVersion: discovery.k8s.io/v1\n"+
			"metadata: {name: %s-%d, labels: {kubernetes.io/service-name: %s}}\naddressType: %s\n"+
			"ports: [{name: http, port: %d}]\nendpoints:\n", service, i, service, family, port)
		for _, a := range byPort[port] {
			fmt.Fprintf(&b, "- addresses: [%q]\n", a)
		}
	}
	if len(ports) == 0 {
		fmt.Fprintf(&b, "---\nkind: EndpointSlice\napiVersion: discovery.k8s.io/v1\n"+
			"metadata: {name: %s-0, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\n", service, service)
	}
	return b.String()
}

// Config is the ConfigMap with Headgate's options, as "key: value".
func Config(keys ...string) string { return ConfigMap("headgate", keys...) }

// ConfigMap is a ConfigMap, "name" or "namespace/name", with data as "key: value".
func ConfigMap(name string, data ...string) string {
	namespace, name, two := strings.Cut(name, "/")
	if !two {
		namespace, name = "default", namespace
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {namespace: %s, name: %s}\ndata:\n", namespace, name)
	for _, d := range data {
		key, value, _ := strings.Cut(d, ": ")
		fmt.Fprintf(&b, "  %s: %q\n", key, value)
	}
	return b.String()
}
