package build

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/finding"
)

// external fills in the endpoints of a Service of type ExternalName.
func (t *backendMaker) external(service *corev1.Service, portText string) {
	name, ok := endpoint.ExternalName(service)
	if !ok {
		t.unreachable("spec.externalName", finding.InvalidValue, endpoint.CheckName(name))
		return
	}
	if !t.view.ExternalNames() {
		t.unreachable("spec.type", finding.NotSupported, "Services of type ExternalName are switched off by --disable-svc-external-name")
		return
	}
	port, ok := endpoint.ExternalPort(service, portText)
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
		t.report(field, finding.InvalidValue, fmt.Sprintf("%s stands for %s: a loopback, link-local or unspecified address "+
			"is connected to only with --allow-local-svc-external-name", name, found.Refused[0]), effect)
	}
	if found.Problem != "" {
		if len(found.Addresses) > 0 {
			effect = "the addresses that it last stood for are used"
		}
		t.report(field, finding.Unresolved, found.Problem, effect)
	}
}
