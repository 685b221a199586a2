package build

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/feature"
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
	return name, checkExternalName(name) == ""
}

// checkExternalName says why a name is not to be looked up, and nothing if it
// is.
func checkExternalName(name string) string {
	plain := strings.TrimSuffix(name, ".")
	if _, err := netip.ParseAddr(plain); err == nil {
		return "an address is no DNS name: name it in an EndpointSlice of a Service without a selector"
	}
	if plain == "localhost" || strings.HasSuffix(plain, ".localhost") {
		return "localhost is where Headgate itself runs"
	}
	if len(validation.IsDNS1123Subdomain(plain)) > 0 {
		return fmt.Sprintf("%q is no DNS name", feature.Shorten(name))
	}
	return ""
}

// external fills in the endpoints of a Service of type ExternalName.
func (t *backendMaker) external(service *corev1.Service, portText string) {
	name, ok := ExternalName(service)
	if !ok {
		t.unreachable("spec.externalName", finding.InvalidValue, checkExternalName(name))
		return
	}
	if !t.view.ExternalNames() {
		t.unreachable("spec.type", finding.NotSupported, "Services of type ExternalName are switched off by --disable-svc-external-name")
		return
	}
	port, ok := externalPort(service, portText)
	if !ok {
		t.unreachable("spec.ports", finding.MissingObject, noPort(portText))
		return
	}
	t.resolved("spec.externalName", name, port)
}

// resolved fills in the addresses of a DNS name, which stands in a field.
func (t *backendMaker) resolved(field, name string, port uint16) {
	found := t.view.Addresses(name)
	if found == nil {
		return
	}
	for _, address := range found.Addresses {
		t.backend.Endpoints = append(t.backend.Endpoints, netip.AddrPortFrom(address, port))
	}
	effect := t.effect()
	if len(found.Addresses) > 0 {
		effect = "the other addresses of the name are used"
	}
	if len(found.Refused) > 0 {
		t.tell(field, finding.InvalidValue, fmt.Sprintf("%s stands for %s: a loopback, link-local or unspecified address "+
			"is connected to only with --allow-local-svc-external-name", name, found.Refused[0]), effect)
	}
	if found.Problem != "" {
		if len(found.Addresses) > 0 {
			effect = "the addresses that it last stood for are used"
		}
		t.tell(field, finding.Unresolved, found.Problem, effect)
	}
}

// externalPort is the port that a Service of type ExternalName is asked at. If
// it has none of that number, it is the number itself: such Services need no
// ports.
func externalPort(service *corev1.Service, text string) (port uint16, ok bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	for _, p := range service.Spec.Ports {
		if isTCP(p.Protocol) && isPort(p.Port) && (text == model.FirstPort || p.Name == text || err == nil && p.Port == int32(number)) {
			target := cmp.Or(int32(p.TargetPort.IntValue()), p.Port)
			return uint16(target), isPort(target)
		}
	}
	return uint16(number), err == nil && number > 0
}
