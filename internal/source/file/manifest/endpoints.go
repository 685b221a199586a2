package manifest

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Endpoints is deprecated in clusters, but many files have it.
//
//lint:ignore SA1019 Manifests have it.
type Endpoints = corev1.Endpoints

// ToSlices makes an EndpointSlice of each subset and address family. Their
// names have a colon, so that no object of a file can have the same name.
func ToSlices(e *Endpoints) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for i, subset := range e.Subsets {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			list := appendAddresses(nil, subset.Addresses, family, true)
			list = appendAddresses(list, subset.NotReadyAddresses, family, false)
			if len(list) == 0 {
				continue
			}
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: e.Namespace, Name: fmt.Sprintf("%s:%d:%s", e.Name, i, family),
					Labels: map[string]string{discoveryv1.LabelServiceName: e.Name},
				},
				AddressType: family, Endpoints: list, Ports: toPorts(subset.Ports),
			}
			completeSlice(slice)
			all = append(all, slice)
		}
	}
	return all
}

func toPorts(old []corev1.EndpointPort) []discoveryv1.EndpointPort {
	var ports []discoveryv1.EndpointPort
	for _, p := range old {
		port := discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, AppProtocol: p.AppProtocol}
		if p.Protocol != "" {
			port.Protocol = &p.Protocol
		}
		ports = append(ports, port)
	}
	return ports
}

func appendAddresses(list []discoveryv1.Endpoint, old []corev1.EndpointAddress, family discoveryv1.AddressType, ready bool) []discoveryv1.Endpoint {
	for _, a := range old {
		if familyOf(a.IP) != family {
			continue
		}
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			NodeName: a.NodeName, TargetRef: a.TargetRef,
		}
		if a.Hostname != "" {
			endpoint.Hostname = &a.Hostname
		}
		list = append(list, endpoint)
	}
	return list
}

// familyOf is IPv4 for an invalid address: the reader of the slice validates it.
func familyOf(ip string) discoveryv1.AddressType {
	if address, err := netip.ParseAddr(ip); err == nil && address.Is6() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
