package build_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/unit"
)

// BenchmarkFirstLoad applies and builds 10,000 hosts with a Service of 5
// endpoints each and 1,000 certificates. MB/held is what store, builder and
// units hold beside the objects.
func BenchmarkFirstLoad(b *testing.B) {
	objects := cluster(b, 10_000, 1_000)
	for b.Loop() {
		b.StopTimer()
		before := heap()
		b.StartTimer()
		s, builder := newStore(objects), build.New(fakeFeatures(), "nginx.ingress.kubernetes.io")
		units := make([]any, 0, 30_000)
		for _, key := range s.All() {
			units = append(units, buildUnit(b, builder, key, s))
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/1e6, "MB/held")
		runtime.KeepAlive([]any{s, builder, units})
		b.StartTimer()
	}
}

// BenchmarkChange is one endpoint change and one Ingress change in the same
// cluster.
func BenchmarkChange(b *testing.B) {
	objects := cluster(b, 10_000, 0)
	s, builder := newStore(objects), build.New(fakeFeatures(), "nginx.ingress.kubernetes.io")
	n := 0
	for b.Loop() {
		n++
		for _, o := range []metav1.Object{ingressOf(17, n), sliceOf(17, n)} {
			keys := s.Apply(o, false)
			if len(keys) == 0 || len(keys) > 2 {
				b.Fatalf("a change touches %v", keys)
			}
			for _, key := range keys {
				buildUnit(b, builder, key, s)
			}
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func buildUnit(b *testing.B, builder *build.Builder, key unit.Key, v build.View) any {
	built, _ := builder.Unit(key, v)
	if built.Model == nil {
		b.Fatalf("%v is not found", key)
	}
	return built.Model
}

func cluster(b *testing.B, hosts, certificates int) []metav1.Object {
	var objects []metav1.Object
	for i := range hosts {
		ing := ingressOf(i, 0)
		if i < certificates {
			ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{ing.Spec.Rules[0].Host}, SecretName: ing.Name}}
			objects = append(objects, testCertificate{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ing.Name}, Names: []string{ing.Spec.Rules[0].Host},
			}.secret(b))
		}
		objects = append(objects, ing, sliceOf(i, 0), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ing.Name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	}
	return objects
}

func ingressOf(i, version int) *networkingv1.Ingress {
	name, kind := fmt.Sprintf("app-%d", i), networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			Annotations: map[string]string{"nginx.ingress.kubernetes.io/color": "red", "version": fmt.Sprint(version)},
		},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: name + ".example.com",
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &kind, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}},
				}}},
			}},
		}}},
	}
}

func sliceOf(i, version int) *discoveryv1.EndpointSlice {
	name, service, port := "http", fmt.Sprintf("app-%d", i), int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for e := range 5 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", (i>>8)&255, i&255, (e+version)&255)},
		})
	}
	return slice
}
