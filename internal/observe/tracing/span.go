package tracing

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const (
	// maxText is the length of an attribute in bytes, and maxName that of the name of a span.
	maxText = 1 << 10
	maxName = 255

	// otherMethod is what the conventions have for a method that they don't know, and
	// otherName what it is in names of spans.
	otherMethod = "_OTHER"
	otherName   = "HTTP"

	// maxMicroseconds is the last time that OTLP can say.
	maxMicroseconds = math.MaxInt64 / 1000
)

// A maker makes the spans of a request: one of its own, one for each call of an auth service, and one for each
// try of a backend. Their attributes are those of OpenTelemetry's conventions for HTTP.
type maker struct {
	request
	facts             facts
	config            trace.SpanContextConfig
	own, last, parent trace.SpanContext
	start             time.Time
	spans             []tracetest.SpanStub
}

// at is a time so many microseconds after the start. None is before it: the clock was set.
func (m *maker) at(offset float64) time.Time {
	most := float64(maxMicroseconds - m.start.UnixMicro())
	if !(offset > 0) {
		return m.start
	}
	return m.start.Add(time.Duration(min(offset, most, math.MaxInt64/2000)) * time.Microsecond)
}

// add adds a span. errors is the first status that is an error.
func (m *maker) add(span tracetest.SpanStub, status, errors int) {
	span.Name = limited(span.Name, maxName)
	if span.EndTime.Before(span.StartTime) {
		span.EndTime = span.StartTime
	}
	if status > 0 {
		span.Attributes = append(span.Attributes, semconv.HTTPResponseStatusCode(status))
	}
	switch {
	case status <= 0:
		span.Attributes = append(span.Attributes, semconv.ErrorTypeOther)
	case status >= errors:
		span.Attributes = append(span.Attributes, semconv.ErrorTypeKey.String(strconv.Itoa(status)))
	}
	if status <= 0 || status >= errors {
		span.Status = sdktrace.Status{Code: codes.Error}
	}
	span.Attributes = slices.DeleteFunc(span.Attributes, func(a attribute.KeyValue) bool { return a.Value.String() == "" })
	for i, a := range span.Attributes {
		if a.Value.Type() == attribute.STRING {
			span.Attributes[i].Value = attribute.StringValue(limited(a.Value.AsString(), maxText))
		}
	}
	m.spans = append(m.spans, span)
}

// addServer adds the span of the request itself.
func (m *maker) addServer() {
	f := m.facts
	known, methodName := method(f.method)
	status, _ := strconv.Atoi(f.status)
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(known), semconv.URLScheme(m.Scheme), semconv.URLPath(m.Path), semconv.URLQuery(redacted(f.query)),
		semconv.ServerAddress(f.host), semconv.ClientAddress(f.client), semconv.NetworkPeerAddress(f.peer),
		semconv.NetworkProtocolVersion(version(f.protocol)), semconv.UserAgentOriginal(f.userAgent),
		semconv.HTTPRoute(m.Route.Path), semconv.K8SNamespaceName(m.Route.Namespace),
		attribute.String("k8s.ingress.name", m.Route.Ingress), attribute.String("k8s.service.name", m.Route.Service),
		attribute.String("headgate.request_id", f.requestID),
	}
	if known != f.method {
		attributes = append(attributes, semconv.HTTPRequestMethodOriginal(f.method))
	}
	if port := m.port(); port > 0 {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	name := m.Name
	if name == "" {
		name = methodName + " " + m.Route.Path
	}
	m.add(tracetest.SpanStub{
		Name: name, SpanKind: trace.SpanKindServer, SpanContext: m.own, Parent: m.parent, StartTime: m.start, EndTime: m.at(m.Finish),
		Attributes: attributes,
	}, status, http.StatusInternalServerError)
}

// addCalls adds the spans of calls of an auth service.
func (m *maker) addCalls() error {
	for _, call := range m.Calls {
		own, err := m.context(call.ID)
		if err != nil {
			return err
		}
		known, _ := method(call.Method)
		finish := m.Finish
		if call.Finish != nil {
			finish = *call.Finish
		}
		m.add(tracetest.SpanStub{
			Name: "external authentication", SpanKind: trace.SpanKindClient, SpanContext: own, Parent: m.own,
			StartTime: m.at(call.Start), EndTime: m.at(finish),
			Attributes: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(known), semconv.ServerAddress(call.Server)},
		}, call.Status, http.StatusInternalServerError)
	}
	return nil
}

// addTries adds the spans of tries of a backend: one for each address that NGINX lists.
func (m *maker) addTries() {
	addresses, statuses, times, connects := words(m.facts.upstreams), words(m.facts.statuses), words(m.facts.times), words(m.facts.connects)
	known, methodName := method(m.facts.method)
	start := 0.0
	for i, address := range addresses {
		if i < len(m.Tries) {
			start = m.Tries[i]
		}
		finish := m.Finish
		if i+1 < len(m.Tries) {
			finish = m.Tries[i+1]
		} else if took, ok := number(times, i); ok {
			// NGINX counts milliseconds.
			finish = min(finish, start+(took+0.001)*1e6)
		}
		// Other words stand for a group of which no endpoint could be asked.
		if host, port, err := net.SplitHostPort(address); err == nil {
			attributes := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(known), semconv.ServerAddress(host)}
			if n, err := strconv.Atoi(port); err == nil {
				attributes = append(attributes, semconv.ServerPort(n))
			}
			if i > 0 {
				attributes = append(attributes, semconv.HTTPRequestResendCount(i))
			}
			if connect, ok := number(connects, i); ok && connect > 0 {
				attributes = append(attributes, attribute.Int("headgate.connect_time_ms", int(math.Round(connect*1000))))
			}
			status, _ := number(statuses, i)
			m.add(tracetest.SpanStub{
				Name: methodName, SpanKind: trace.SpanKindClient, SpanContext: m.try(i, len(addresses)), Parent: m.own,
				StartTime: m.at(start), EndTime: m.at(finish), Attributes: attributes,
			}, int(status), http.StatusBadRequest)
		}
		start = finish
	}
}

// try is the identity of a try. Backends know only that of the last one: NGINX sends the same headers with all
// of them.
func (m *maker) try(i, tries int) trace.SpanContext {
	if i == tries-1 {
		return m.last
	}
	last := m.last.SpanID()
	sum := fnv.New64a()
	sum.Write(last[:])
	sum.Write(binary.BigEndian.AppendUint32(nil, uint32(i)))
	id := trace.SpanID(sum.Sum(nil))
	if !id.IsValid() {
		id[0] = 1
	}
	return m.last.WithSpanID(id)
}

// knownMethods are those of the conventions.
func knownMethods() []string {
	return []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
		http.MethodPatch,
	}
}

// method is a method as the conventions have it, and what it is in names of spans.
func method(sent string) (known, name string) {
	if slices.Contains(knownMethods(), sent) {
		return sent, sent
	}
	return otherMethod, otherName
}

// port is the one that the client asked for, 0 for none.
func (m *maker) port() int {
	if at := strings.LastIndexByte(m.facts.httpHost, ':'); at >= 0 {
		if port, err := strconv.ParseUint(m.facts.httpHost[at+1:], 10, 16); err == nil {
			return int(port)
		}
	}
	if m.Scheme == "https" {
		return 443
	}
	return 80
}

// version is that of HTTP as the conventions have it.
func version(protocol string) string {
	return strings.TrimSuffix(strings.TrimPrefix(protocol, "HTTP/"), ".0")
}

// words are what a variable of NGINX lists, without the marks between its groups.
func words(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' }), func(word string) bool { return word == ":" })
}

// number is a word as a number.
func number(words []string, i int) (float64, bool) {
	if i >= len(words) {
		return 0, false
	}
	value, err := strconv.ParseFloat(words[i], 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// limited cuts a text that is too long, between two characters.
func limited(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most]
}
