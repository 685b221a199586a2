package build

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/model"
)

// Backend builds the backend of that key (see model.BackendKey). It is not
// found when no Ingress refers to it any more; a backend that can't be reached
// is found and has no endpoints.
func (b *Builder) Backend(key string, v View) (be model.Backend, found bool, fs []finding.Finding) {
	name, portText, ok := spec.SplitKey(key)
	if !ok || !v.Referenced(key) {
		return model.Backend{}, false, nil
	}
	t := &backendMaker{settings: b.settings, view: v, name: name, backend: model.Backend{Key: key}}
	if key == routing.DefaultKey(v) {
		t.because, t.otherwise = "--default-backend-service names it", "requests that match no rule are answered 404"
	}
	if name.Namespace == model.NoNamespace {
		if b.routes.Needed(key, v) {
			t.object, t.field = b.routes.CallerOf(key, v)
			t.outside(portText)
		}
		return t.backend, true, finding.Sort(t.findings)
	}
	if v.CalledByOptions(key) {
		if _, field := b.routes.CallerOf(key, v); field != "" {
			t.because = "the ConfigMap key " + field + " names it"
		}
	}
	if t.because == "" && portText == model.FirstPort {
		t.asDefault(v)
	}
	var denied bool
	t.backend.Balancing, denied, t.findings = b.routes.Balancing(key, v)
	switch service := v.Service(name); {
	case denied: // and a finding says why
	case service == nil:
		t.unreachable("metadata.name", finding.MissingObject, "the Service does not exist, but "+t.referrer())
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		t.external(service, portText)
	default:
		t.internal(service, portText)
	}
	t.check()
	return t.backend, true, finding.Sort(t.findings)
}

// asDefault says which Ingress names a Service without a port: as a default backend.
func (t *backendMaker) asDefault(v View) {
	if users := spec.OldestFirst(v.Users(t.backend.Key)); len(users) > 0 {
		t.because = spec.ObjectName(users[0]) + " has it as a default backend"
		t.otherwise = "requests that it would answer are answered as if no Ingress named it"
	}
}

// replaced names an Ingress whose requests to the backend another one answers while it has no endpoint.
func (t *backendMaker) replaced() string {
	for _, ing := range spec.OldestFirst(t.view.Users(t.backend.Key)) {
		if annotation := t.settings.Fallback(t.settings.Read(ing, t.view)); annotation != "" && !t.view.References(ing).IsCanary {
			return ", or by the " + annotation + " of " + spec.ObjectName(ing)
		}
	}
	return ""
}

type backendMaker struct {
	settings *setting.Reader
	view     View
	name     types.NamespacedName
	backend  model.Backend
	findings []finding.Finding
	// object and field name who calls a backend that is not a Service's.
	object, field string
	// because is what refers to the backend, if it is not an Ingress, and otherwise the effect
	// of a backend that can't be reached, if it is another one.
	because, otherwise string
}

func (t *backendMaker) report(field string, code finding.Code, message, effect string) {
	t.findings = append(t.findings, finding.Finding{
		Object: cmp.Or(t.object, "service/"+t.name.String()), Field: field, Code: code, Message: message, Effect: effect,
	})
}

func (t *backendMaker) unreachable(field string, code finding.Code, message string) {
	t.report(field, code, message, t.effect())
}

func (t *backendMaker) effect() string {
	if t.otherwise != "" {
		return t.otherwise
	}
	if t.name.Namespace == model.NoNamespace {
		return "requests that need this auth service are answered 500"
	}
	return "requests to backend " + strings.TrimSuffix(t.backend.Key, "/") + " are answered 503" + t.replaced()
}

func (t *backendMaker) referrer() string { return cmp.Or(t.because, "an Ingress refers to it") }

func (t *backendMaker) noPort(text string) {
	message := "the Service has no TCP port"
	if text != model.FirstPort {
		message += " " + strconv.Quote(text)
	}
	t.unreachable("spec.ports", finding.MissingObject, message+", but "+t.referrer())
}

func (t *backendMaker) internal(service *corev1.Service, portText string) {
	port := endpoint.FindPort(service, portText)
	if port == nil {
		t.noPort(portText)
		return
	}
	if t.backend.ServiceAddress {
		if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && endpoint.IsPort(port.Port) {
			t.backend.Endpoints = []netip.AddrPort{netip.AddrPortFrom(address.Unmap(), uint16(port.Port))}
			return
		}
		t.report("spec.clusterIP", finding.NotSupported, "the Service has no cluster IP, which service-upstream needs",
			"the endpoints of the Service are used")
	}
	t.ready(service, port)
}

// ready fills in the endpoints of a Service's port.
func (t *backendMaker) ready(service *corev1.Service, port *corev1.ServicePort) {
	field := cmp.Or(t.field, "metadata.name")
	endpointSlices := t.view.EndpointSlices(t.name)
	if len(endpointSlices) == 0 && t.view.ManualEndpoints() {
		t.unreachable(field, finding.MissingObject, noSlice(service.Name))
		return
	}
	near := endpoint.Nearby{Zone: t.view.Zone(), Want: endpoint.NearnessOf(service)}
	t.backend.Endpoints = endpoint.Of(endpointSlices, port, near, allowed(t.view))
	if t.backend.Sessions {
		t.backend.Terminating = endpoint.Terminating(endpointSlices, port, t.backend.Endpoints, allowed(t.view))
	}
	if slice, refused := endpoint.Refused(endpointSlices, port, allowed(t.view)); len(refused) > 0 {
		effect := t.effect()
		if len(t.backend.Endpoints) > 0 {
			effect = "the other endpoints are used"
		}
		t.report(field, finding.NotAllowed, fmt.Sprintf("EndpointSlice %s has the address %s, which belongs to this machine, "+
			"to a metadata service or to Headgate itself: --allow-local-svc-external-name is required to connect to it", slice, refused[0]), effect)
	}
}

// allowed reports whether tenants' backends may be at an address.
func allowed(v View) endpoint.Allowed {
	if v.LocalAddresses() {
		return func(netip.AddrPort) bool { return true }
	}
	listeners := v.Listeners()
	return func(a netip.AddrPort) bool { return !guard.IsLocal(a.Addr()) && !slices.Contains(listeners, a) }
}

// noSlice is about a Service in a folder, where the manifests of a chart hold
// Pods and no addresses.
func noSlice(service string) string {
	return "the folder has no EndpointSlice for the Service. In a cluster, Kubernetes creates it; to serve from the folder, add one with the label " +
		discoveryv1.LabelServiceName + ": " + finding.Shorten(service)
}

func (t *backendMaker) external(service *corev1.Service, portText string) {
	name, ok := endpoint.ExternalName(service)
	if !ok {
		t.unreachable("spec.externalName", finding.InvalidValue, endpoint.CheckName(name))
		return
	}
	if !t.view.ExternalNames() {
		t.unreachable("spec.type", finding.NotSupported, "Services of type ExternalName are disabled by --disable-svc-external-name")
		return
	}
	port, ok := endpoint.ExternalPort(service, portText)
	if !ok {
		t.noPort(portText)
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
	refused := slices.Clone(found.Refused)
	may := allowed(t.view)
	for _, address := range found.Addresses {
		if at := netip.AddrPortFrom(address, port); may(at) {
			t.backend.Endpoints = append(t.backend.Endpoints, at)
		} else {
			refused = append(refused, address)
		}
	}
	effect := t.effect()
	if len(t.backend.Endpoints) > 0 {
		effect = "the other addresses of the name are used"
	}
	if len(refused) > 0 {
		t.report(field, finding.InvalidValue, fmt.Sprintf("%s resolves to %s, a loopback, link-local or unspecified address, or one of a metadata service or of Headgate itself: "+
			"--allow-local-svc-external-name is required to connect to it", name, refused[0]), effect)
	}
	if found.Problem != "" {
		if len(found.Addresses) > 0 {
			effect = "the last known addresses are used"
		}
		t.report(field, finding.Unresolved, found.Problem, effect)
	}
}

// outside fills in the endpoints of a backend that is not a Service's.
func (t *backendMaker) outside(portText string) {
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return
	}
	if address, ok := model.Address(t.name.Name); ok {
		if !allowed(t.view)(netip.AddrPortFrom(address, uint16(port))) {
			t.unreachable(t.field, finding.InvalidValue, t.name.Name+" is a loopback, link-local or unspecified address, or one of a metadata service or of Headgate itself: "+
				"--allow-local-svc-external-name is required to connect to it")
			return
		}
		t.backend.Endpoints = []netip.AddrPort{netip.AddrPortFrom(address, uint16(port))}
		return
	}
	if problem := endpoint.CheckName(t.name.Name); problem != "" {
		t.unreachable(t.field, finding.InvalidValue, problem)
		return
	}
	t.resolved(t.field, t.name.Name, uint16(port))
}
