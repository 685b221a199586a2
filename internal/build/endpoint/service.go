package endpoint

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// ExternalName is the DNS name that a Service stands for, in lower case; a dot
// at its end says that it is absolute. It is false for a Service that is of
// another type, or whose name is not to be looked up.
func ExternalName(service *corev1.Service) (name string, ok bool) {
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		return "", false
	}
	name = strings.ToLower(service.Spec.ExternalName)
	return name, CheckName(name) == ""
}

// CheckName says why a name is not to be looked up, and nothing if it is. A backend
// without a namespace is looked up by its own name.
func CheckName(name string) string {
	plain := strings.TrimSuffix(name, ".")
	if _, err := netip.ParseAddr(plain); err == nil {
		return "must be a DNS name: for an address, use a Service without a selector, and an EndpointSlice"
	}
	if plain == "localhost" || strings.HasSuffix(plain, ".localhost") {
		return "localhost is not allowed: it is the machine that Headgate runs on"
	}
	if len(validation.IsDNS1123Subdomain(plain)) > 0 {
		return fmt.Sprintf("invalid name %q: must be a DNS name", finding.Shorten(name))
	}
	return ""
}

// FindPort is the first TCP port of the Service that the text means: its
// number, its target port or its name, or any if it is model.FirstPort. That a
// target port counts, and may come before another port's number, is as in
// ingress-nginx.
func FindPort(service *corev1.Service, text string) *corev1.ServicePort {
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if !IsTCP(p.Protocol) {
			continue
		}
		if text == model.FirstPort || strconv.Itoa(int(p.Port)) == text || p.TargetPort.String() == text || p.Name == text {
			return p
		}
	}
	return nil
}

// AppProtocols are the application protocols of a Service's TCP ports, by the texts that
// backends mean the ports by. It is nil if no port has one.
func AppProtocols(service *corev1.Service) map[string]string {
	if service == nil || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.AppProtocol != nil }) {
		return nil
	}
	protocols := make(map[string]string, 2*len(service.Spec.Ports))
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if !IsTCP(p.Protocol) {
			continue
		}
		texts := []string{strconv.Itoa(int(p.Port)), p.Name}
		if service.Spec.Type != corev1.ServiceTypeExternalName {
			texts = append(texts, p.TargetPort.String())
		}
		for _, text := range texts {
			if _, ok := protocols[text]; !ok {
				protocols[text] = ptr.Deref(p.AppProtocol, "")
			}
		}
	}
	return protocols
}

// IsTCP reports whether a port is for TCP, which it is where it says nothing.
func IsTCP(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

// sameProtocol compares protocols, of which none is TCP.
func sameProtocol(a, b corev1.Protocol) bool {
	return cmp.Or(a, corev1.ProtocolTCP) == cmp.Or(b, corev1.ProtocolTCP)
}

// StreamPort is the first port of the Service for the protocol with that number or name.
func StreamPort(service *corev1.Service, protocol corev1.Protocol, text string) *corev1.ServicePort {
	number, err := strconv.Atoi(text)
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if sameProtocol(p.Protocol, protocol) && (err == nil && int(p.Port) == number || err != nil && p.Name == text) {
			return p
		}
	}
	return nil
}

// ExternalStreamPort is the port that a Service of type ExternalName is connected to:
// that of StreamPort, or the number itself, as such Services need no ports.
func ExternalStreamPort(service *corev1.Service, protocol corev1.Protocol, text string) (port uint16, ok bool) {
	if p := StreamPort(service, protocol, text); p != nil {
		target := cmp.Or(int32(p.TargetPort.IntValue()), p.Port)
		return uint16(target), IsPort(target)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	return uint16(number), err == nil && number > 0
}

// IsPort reports whether a number is a port's.
func IsPort(n int32) bool { return n > 0 && n <= 65535 }

// ExternalPort is the port that a Service of type ExternalName is asked at. If
// it has none of that number, it is the number itself: such Services need no
// ports.
func ExternalPort(service *corev1.Service, text string) (port uint16, ok bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	for _, p := range service.Spec.Ports {
		if IsTCP(p.Protocol) && IsPort(p.Port) && (text == model.FirstPort || p.Name == text || err == nil && p.Port == int32(number)) {
			target := cmp.Or(int32(p.TargetPort.IntValue()), p.Port)
			return uint16(target), IsPort(target)
		}
	}
	return uint16(number), err == nil && number > 0
}
