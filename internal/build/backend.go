package build

import (
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Backend builds the backend of that key (see model.BackendKey). It is not
// found when no Ingress refers to it any more; a backend that can't be reached
// is found and has no endpoints. Its findings are those of the Service: which
// Ingresses refer to it is no part of the unit.
func (b *Builder) Backend(key string, v View) (be model.Backend, found bool, fs []finding.Finding) {
	name, portText, ok := SplitKey(key)
	if !ok || !v.Referenced(key) {
		return model.Backend{}, false, nil
	}
	be = model.Backend{Key: key}
	tell := func(field string, code finding.Code, message string) (model.Backend, bool, []finding.Finding) {
		return be, true, []finding.Finding{{
			Object: "service/" + name.String(), Field: field, Code: code, Message: message,
			Effect: "requests to backend " + key + " are answered 503",
		}}
	}
	service := v.Service(name)
	if service == nil {
		return tell("metadata.name", finding.MissingObject, "the Service does not exist, but an Ingress refers to it")
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return tell("spec.type", finding.NotSupported, "a Service of type ExternalName has no endpoints")
	}
	port := findPort(service, portText)
	if port == nil {
		return tell("spec.ports", finding.MissingObject, "the Service has no TCP port "+strconv.Quote(portText)+", but an Ingress refers to it")
	}
	for _, slice := range v.EndpointSlices(name) {
		be.Endpoints = appendEndpoints(be.Endpoints, slice, port)
	}
	slices.SortFunc(be.Endpoints, netip.AddrPort.Compare)
	be.Endpoints = slices.Compact(be.Endpoints)
	return be, true, nil
}

// findPort is the first TCP port of the Service that the text means: its
// number, its target port or its name, or any if it is model.FirstPort. That a
// target port counts, and may come before another port's number, is the
// predecessor's.
func findPort(service *corev1.Service, text string) *corev1.ServicePort {
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if !isTCP(p.Protocol) {
			continue
		}
		if text == model.FirstPort || strconv.Itoa(int(p.Port)) == text || p.TargetPort.String() == text || p.Name == text {
			return p
		}
	}
	return nil
}

func isTCP(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

// appendEndpoints adds a slice's endpoints. Only ready counts: a terminating
// pod leaves at once.
func appendEndpoints(list []netip.AddrPort, slice *discoveryv1.EndpointSlice, port *corev1.ServicePort) []netip.AddrPort {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return list
	}
	ports := slicePorts(slice, port)
	for _, endpoint := range slice.Endpoints {
		if ready := endpoint.Conditions.Ready; ready != nil && !*ready {
			continue
		}
		for _, text := range endpoint.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil || address.Zone() != "" {
				continue
			}
			for _, p := range ports {
				list = append(list, netip.AddrPortFrom(address.Unmap(), p))
			}
		}
	}
	return list
}

// slicePorts are the numbers of the slice's ports that belong to a Service's
// port: those of the same name, or all if the Service's port has none. Where
// the slice names no port, as in slices made by hand, it is the number of the
// target port.
func slicePorts(slice *discoveryv1.EndpointSlice, port *corev1.ServicePort) []uint16 {
	var numbers []uint16
	named := false
	for _, p := range slice.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		named = named || name != ""
		if p.Protocol != nil && !isTCP(*p.Protocol) || p.Port == nil || !isPort(*p.Port) {
			continue
		}
		if port.Name == "" || port.Name == name {
			numbers = append(numbers, uint16(*p.Port))
		}
	}
	if len(numbers) > 0 || named || port.TargetPort.Type != intstr.Int {
		return numbers
	}
	target := port.TargetPort.IntVal
	if target == 0 { // the API server fills it in, files may leave it out
		target = port.Port
	}
	if !isPort(target) {
		return nil
	}
	return []uint16{uint16(target)}
}

func isPort(n int32) bool { return n > 0 && n <= 65535 }
