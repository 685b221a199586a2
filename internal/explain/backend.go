package explain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// explainBackends describes the endpoints of the route's backends.
func (x *explainer) explainBackends(won *model.Route, rule routing.RuleTrace) {
	defer x.explainErrorBackends(won)
	if won.Backend == "" {
		return
	}
	defer x.explainCanaries(won, rule)
	role := report.OwnBackend
	if won.Default {
		role = report.DefaultBackend
	}
	x.explainBackend(won.Backend, role)
	if won.Fallback != "" && !won.Default {
		x.explainBackend(won.Fallback, report.FallbackBackend)
	}
}

func (x *explainer) explainBackend(key, role string) {
	backend, trace, found, findings := x.Builder.TraceBackend(key, x.Store)
	if !found {
		return
	}
	x.keep(unit.FromBackend(backend))
	service, port, _ := spec.SplitKey(key)
	object := "service/" + service.String()
	x.involve(object)
	said := report.Backend{
		Key: key, Role: role, Service: describe(trace, port), Used: []string{},
		Settings: x.policies(trace.Settings), Owner: ingressName(trace.Owner),
	}
	for _, e := range backend.Endpoints {
		said.Used = append(said.Used, e.String())
	}
	for _, e := range trace.Endpoints {
		slice := "endpointslice/" + service.Namespace + "/" + e.Slice
		x.involve(slice)
		said.Endpoints = append(said.Endpoints, report.Endpoint{
			Address: e.Address, Slice: slice,
			State: e.Readiness.String(), Used: e.Asked, Why: e.Why,
		})
	}
	if len(said.Used) == 0 {
		for _, f := range findings {
			if f.Object == object {
				said.Why = f.Message
			}
		}
		if said.Why == "" {
			said.Why = whyNothing(trace)
			if trace.Addresses == nil {
				said.Unresolved = trace.ExternalName
			}
		}
	}
	x.out.Backends = append(x.out.Backends, said)
}

// whyNothing returns why a backend without a finding has no endpoint.
func whyNothing(trace build.BackendTrace) string {
	switch {
	case trace.ExternalName != "" && trace.Addresses == nil:
		return fmt.Sprintf("the addresses of %s were not looked up", trace.ExternalName)
	case len(trace.Endpoints) == 0:
		return "no EndpointSlice of the Service has an endpoint"
	}
	return "no endpoint is ready"
}

// describe describes a Service.
func describe(trace build.BackendTrace, port string) string {
	s := trace.Service
	switch {
	case s == nil:
		return "does not exist"
	case trace.ExternalName != "":
		return "ExternalName " + trace.ExternalName
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return "ExternalName"
	case trace.Port == nil:
		return fmt.Sprintf("%s without the port %s", serviceType(s), port)
	}
	p := trace.Port
	text := fmt.Sprintf("%s, port %d", serviceType(s), p.Port)
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	if target := p.TargetPort.String(); target != "0" && target != fmt.Sprint(p.Port) {
		text += ", target port " + target
	}
	if p.AppProtocol != nil {
		text += ", appProtocol " + finding.Shorten(*p.AppProtocol)
	}
	return text
}

func serviceType(s *corev1.Service) string {
	switch {
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		return "headless"
	case s.Spec.Type == "":
		return string(corev1.ServiceTypeClusterIP)
	}
	return string(s.Spec.Type)
}
