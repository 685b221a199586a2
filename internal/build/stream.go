package build

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/streamvalue"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Stream builds the TCP or UDP port of that name (see model.StreamName), which is the key
// of an entry of a ConfigMap. It is not found when there is no such entry, or when it can't
// be served; one whose Service has no endpoints is found and has none.
func (b *Builder) Stream(name string, v View) (s model.Stream, found bool, fs []finding.Finding) {
	protocol, portText, _ := strings.Cut(name, "/")
	object, at := v.Streams(protocol)
	if object == nil {
		return missingStreams(protocol, portText, at)
	}
	text, ok := object.Data[portText]
	if !ok {
		return model.Stream{}, false, nil
	}
	t := &streamMaker{view: v}
	t.stream = model.Stream{Protocol: protocol, Object: "configmap/" + at.String(), Field: "data." + finding.Shorten(portText)}
	found = t.make(portText, text)
	return t.stream, found, finding.Sort(t.findings)
}

// missingStreams reports a ConfigMap that a flag names and that does not exist, once: its
// unit has no port.
func missingStreams(protocol, port string, at types.NamespacedName) (s model.Stream, found bool, fs []finding.Finding) {
	if at.Name == "" || port != "" {
		return s, false, nil
	}
	return s, false, []finding.Finding{missingConfigMap(at, protocol+"-services-configmap", "no ports are opened for it")}
}

type streamMaker struct {
	view     View
	stream   model.Stream
	findings []finding.Finding
}

const closedPort = "the port is not opened"

func (t *streamMaker) report(code finding.Code, message, effect string) {
	t.findings = append(t.findings, finding.Finding{
		Object: t.stream.Object, Field: t.stream.Field, Code: code, Message: message, Effect: effect,
	})
}

// make reports whether the entry can be served.
func (t *streamMaker) make(portText, text string) bool {
	port, err := streamvalue.Port(portText)
	if err != nil {
		t.report(finding.InvalidValue, "invalid key: "+err.Error(), closedPort)
		return false
	}
	value, err := streamvalue.Parse(t.stream.Protocol, text)
	if err != nil {
		t.report(finding.InvalidValue, fmt.Sprintf("invalid value %q: %v", finding.Shorten(text), err), closedPort)
		return false
	}
	if by := t.view.ReservedPort(port); by != "" {
		t.report(finding.UnavailablePort, fmt.Sprintf("port %d is reserved by %s", port, by), closedPort)
		return false
	}
	if value.Ignored != "" {
		t.report(finding.InvalidValue, fmt.Sprintf("invalid value %q: %s", finding.Shorten(text), value.Ignored), "this part is ignored")
	}
	t.stream.Port, t.stream.ServicePort = port, value.Port
	t.stream.Namespace, t.stream.Service = value.Service.Namespace, value.Service.Name
	t.stream.ProxyIn, t.stream.ProxyOut = value.ProxyIn, value.ProxyOut
	return t.endpoints(value)
}

// endpoints fills in those of the Service, and reports false if there is no such Service.
func (t *streamMaker) endpoints(value streamvalue.Value) bool {
	service := t.view.Service(value.Service)
	if service == nil {
		t.report(finding.MissingObject, "Service "+value.Service.String()+" does not exist", closedPort)
		return false
	}
	of := &backendMaker{
		view: t.view, name: value.Service, object: t.stream.Object, field: t.stream.Field, otherwise: closedPort,
	}
	protocol := corev1.Protocol(strings.ToUpper(t.stream.Protocol))
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		t.external(of, service, protocol, value.Port)
	} else if port := endpoint.StreamPort(service, protocol, value.Port); port == nil {
		t.noPort(value)
	} else {
		of.ready(service, port)
	}
	t.stream.Endpoints = of.backend.Endpoints
	t.findings = append(t.findings, of.findings...)
	return true
}

func (t *streamMaker) noPort(value streamvalue.Value) {
	t.report(finding.MissingObject, fmt.Sprintf("Service %s has no %s port %s",
		value.Service, strings.ToUpper(t.stream.Protocol), strconv.Quote(value.Port)), closedPort)
}

func (t *streamMaker) external(of *backendMaker, service *corev1.Service, protocol corev1.Protocol, port string) {
	name, ok := endpoint.ExternalName(service)
	if !ok {
		t.report(finding.InvalidValue, "spec.externalName of the Service: "+endpoint.CheckName(name), closedPort)
		return
	}
	if !t.view.ExternalNames() {
		t.report(finding.NotSupported, "Services of type ExternalName are disabled by --disable-svc-external-name", closedPort)
		return
	}
	number, ok := endpoint.ExternalStreamPort(service, protocol, port)
	if !ok {
		t.report(finding.MissingObject, fmt.Sprintf("the Service has no %s port %s", protocol, strconv.Quote(port)), closedPort)
		return
	}
	of.resolved(t.stream.Field, name, number)
}
