// Package opentelemetry says which requests have spans, how they are sampled, and where spans
// are sent.
package opentelemetry

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/template"
)

// The bounds of what waits for its export: each worker, and the controller, keep so many spans.
const (
	maxQueue = 100000
	maxBatch = 10000
	maxDelay = 10 * time.Minute
	maxPort  = 1<<16 - 1
	maxName  = 255
)

var (
	enable = feature.Setting[bool]{
		Annotation: "enable-opentelemetry", Key: "enable-opentelemetry", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Makes spans of requests, and passes their trace on to backends. It needs a collector: the key otlp-collector-host. See [tracing.md](tracing.md).",
	}
	operationName = feature.Setting[template.Template]{
		Annotation: "opentelemetry-operation-name", Needs: feature.NeedsTrue(enable), Key: "opentelemetry-operation-name", Parse: feature.Optional(parseName), Risk: feature.Medium,
		Doc: "The name of the spans of requests. It can contain variables, such as $request_method. If it is empty, the name is the method and the path of the rule.",
	}
	trust = feature.Setting[bool]{
		Annotation: "opentelemetry-trust-incoming-span", Needs: feature.NeedsTrue(enable), Key: "opentelemetry-trust-incoming-span", Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Continues the trace that the client sent. If it is false, each request begins a new trace, and what the client sent is not passed on.",
	}

	sampler = feature.Setting[model.Sampler]{
		Key: "otel-sampler", Default: model.SampleAll, Parse: parseSampler, Scope: feature.ScopeProcess,
		Doc: "Which requests have spans: all (AlwaysOn, ParentBased), none (AlwaysOff), or a share of the traces (TraceIdRatioBased).",
	}
	ratio = feature.Setting[float64]{
		Key: "otel-sampler-ratio", Default: 0.01, Parse: parseRatio, Scope: feature.ScopeProcess,
		Doc: "The share of the traces that otel-sampler TraceIdRatioBased samples.",
	}
	parentBased = feature.Setting[bool]{
		Key: "otel-sampler-parent-based", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Samples a request whose client sent a trace as the client decided, if it is trusted. otel-sampler decides about the others. ParentBased does so in any case.",
	}
	serviceName = feature.Setting[string]{
		Key: "otel-service-name", Default: "nginx", Scope: feature.ScopeProcess,
		Parse: feature.Matching(`^[ -~]+$`, maxName, "must be 1 to 255 printable ASCII characters"),
		Doc:   "The name of the service in traces. Variables are not replaced.",
	}
	collectorHost = feature.Setting[string]{
		Key: "otlp-collector-host", Parse: feature.Optional(parseHost), Scope: feature.ScopeProcess,
		Doc: "The host name or address of the OpenTelemetry collector that gets the spans, over OTLP with gRPC. Without it, the environment variable OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT must name one, or there are no spans.",
	}
	collectorPort = feature.Setting[int]{
		Key: "otlp-collector-port", Default: 4317, Parse: feature.Int(1, maxPort), Scope: feature.ScopeProcess,
		Doc: "The port of the collector.",
	}
	queueSize = feature.Setting[int]{
		Key: "otel-max-queuesize", Default: 2048, Parse: feature.Int(1, maxQueue), Scope: feature.ScopeProcess,
		Doc: "How many spans may wait for their export, in each worker and in the controller. Further ones are dropped, and counted.",
	}
	batchSize = feature.Setting[int]{
		Key: "otel-max-export-batch-size", Default: 512, Parse: feature.Int(1, maxBatch), Scope: feature.ScopeProcess,
		Doc: "How many spans are exported at once.",
	}
	delay = feature.Setting[int]{
		Key: "otel-schedule-delay-millis", Default: 5000, Parse: feature.Int(1, int(maxDelay.Milliseconds())), Scope: feature.ScopeProcess,
		Doc: "How long spans wait for others before they are exported, in milliseconds.",
	}
	configFile = feature.Setting[string]{
		Key: "opentelemetry-config", Default: "/etc/ingress-controller/telemetry/opentelemetry.toml", Parse: func(text string) (string, error) { return text, nil }, Scope: feature.ScopeProcess,
		Doc: "Has no effect: " + noModule + ".",
	}
)

// Feature is the settings of tracing.
func Feature() feature.Feature {
	return feature.Feature{
		Name: "opentelemetry",
		Doc:  "Makes spans of requests.",
		Settings: []feature.AnySetting{
			enable, operationName, trust, sampler, ratio, parentBased, serviceName, collectorHost, collectorPort, queueSize, batchSize, delay, configFile,
		},
		Route:   applyRoute,
		Process: applyProcess,
	}
}

const (
	noModule    = "it named the file of the module that made spans in ingress-nginx"
	noCollector = "tracing needs a collector: the key otlp-collector-host, or the environment variable OTEL_EXPORTER_OTLP_ENDPOINT, must name one"
	noSpans     = "requests have no spans"
)

// hasCollector reports whether there is somewhere to send spans to.
func hasCollector(v feature.Values) bool {
	return collectorHost.Get(v) != "" || v.Has(feature.TraceCollector)
}

func applyRoute(v feature.Values, out *feature.RouteOut) {
	if !enable.Get(v) {
		return
	}
	if !hasCollector(v) {
		if v.IsSet(enable) {
			out.Warn(enable, finding.MissingField, noCollector, noSpans)
		}
		return
	}
	out.Route.Trace = model.Trace{On: true, Distrusts: !trust.Get(v)}
	if name := operationName.Get(v); len(name) > 0 {
		out.Route.Trace.Name = name
	}
}

func applyProcess(v feature.Values, out *feature.ProcessOut) {
	if configFile.Get(v) != configFile.Default {
		out.Warn(configFile, finding.NoEffect, noModule, "it has no effect")
	}
	if enable.Get(v) && !hasCollector(v) {
		out.Warn(collectorHost, finding.MissingField, noCollector, noSpans)
	}
	t := model.Tracing{
		On: enable.Get(v), Sampler: sampler.Get(v), Ratio: ratio.Get(v), ParentBased: parentBased.Get(v), ServiceName: serviceName.Get(v),
		HasCollector: hasCollector(v), QueueSize: queueSize.Get(v), BatchSize: min(batchSize.Get(v), queueSize.Get(v)),
		Delay: time.Duration(delay.Get(v)) * time.Millisecond,
	}
	if host := collectorHost.Get(v); host != "" {
		t.Collector = host + ":" + strconv.Itoa(collectorPort.Get(v))
	}
	out.Process.Tracing = t
}

func parseSampler(text string) (model.Sampler, error) {
	samplers := []string{string(model.SampleAll), string(model.SampleNone), string(model.SampleRatio), string(model.SampleParent)}
	if !slices.Contains(samplers, text) {
		return "", fmt.Errorf("must be one of %s", strings.Join(samplers, ", "))
	}
	return model.Sampler(text), nil
}

func parseRatio(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 1 {
		return 0, errors.New("must be a number from 0 to 1")
	}
	return n, nil
}

var hostForm = feature.Matching(`^([A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?\.?$`, 253, "")

// parseHost returns a host name or an address, one of IPv6 in brackets.
func parseHost(text string) (string, error) {
	if _, err := hostForm(text); err == nil {
		return text, nil
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil || address.Zone() != "" {
		return "", errors.New("must be a host name or an IP address, without a scheme and a port")
	}
	return "[" + address.String() + "]", nil
}

var nameForm = feature.Matching(`^[A-Za-z0-9 _./:${}*-]+$`, maxName, "must be at most 255 letters, digits, spaces and _./:*-, and variables such as $request_method")

// parseName reads the name of spans. No group of a path: a name is made of every request that
// is traced, and expressions take their owner's time.
func parseName(text string) (template.Template, error) {
	if _, err := nameForm(text); err != nil {
		return nil, err
	}
	name, err := template.Parse(text, false)
	if slices.ContainsFunc(name, func(p template.Piece) bool { return p.Variable == "group" }) {
		return nil, errors.New("groups of the path, such as $1, are not supported: must be other variables, such as $request_method")
	}
	return name, err
}
