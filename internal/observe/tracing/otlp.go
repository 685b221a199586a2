package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/headgate/headgate/internal/model"
)

const (
	// retryFirst and retryMax are the pauses between tries to export, and retryLimit is how long
	// there are any.
	retryFirst = time.Second
	retryMax   = 5 * time.Second
	retryLimit = 20 * time.Second
	// connectLimit is how long a connection may take.
	connectLimit = 10 * time.Second
	// tracesPath is the path of the collector for spans over HTTP.
	tracesPath = "/v1/traces"
)

// An endpoint is where spans are exported to. The key's wins over the environment's.
type endpoint struct {
	environment
	// url is empty if the SDK reads it from the environment.
	url     string
	address string
}

// newEndpoint returns where spans go.
func newEndpoint(t model.Tracing) (endpoint, error) {
	if err := checkEnvironment(); err != nil {
		return endpoint{}, err
	}
	to := endpoint{environment: readEnvironment()}
	if t.Collector == "" {
		to.address = to.endpoint.Host
		return to, nil
	}
	u := url.URL{Scheme: "http", Host: t.Collector, Path: tracesPath}
	if to.tls {
		u.Scheme = "https"
	}
	to.url, to.address = u.String(), t.Collector
	if parsed, err := url.Parse(to.url); err != nil || parsed.Host != t.Collector {
		return to, fmt.Errorf("invalid address of a collector %q: must be a host and a port", t.Collector)
	}
	return to, nil
}

// connect returns an exporter, which connects when it is first used.
func (to endpoint) connect() (sdktrace.SpanExporter, error) {
	exporter, err := otlptrace.New(context.Background(), to.client())
	if err != nil {
		return nil, fmt.Errorf("make an exporter: %w", err)
	}
	return exporter, nil
}

func (to endpoint) client() otlptrace.Client {
	if to.protocol != protocolGRPC {
		options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: retryFirst, MaxInterval: retryMax, MaxElapsedTime: retryLimit,
		})}
		if to.url != "" {
			options = append(options, otlptracehttp.WithEndpointURL(to.url))
		}
		return otlptracehttp.NewClient(options...)
	}
	pauses := backoff.DefaultConfig
	pauses.MaxDelay = retryMax
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
			Enabled: true, InitialInterval: retryFirst, MaxInterval: retryMax, MaxElapsedTime: retryLimit,
		}),
		otlptracegrpc.WithDialOption(grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: connectLimit})),
	}
	if to.url != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(to.url))
	}
	return otlptracegrpc.NewClient(options...)
}

// newResource says who makes spans. What the environment says wins over what is known otherwise.
func (s Settings) newResource(service string) (*resource.Resource, error) {
	known := []attribute.KeyValue{attribute.String("service.name", service), attribute.String("service.version", s.Version)}
	for _, a := range []struct{ name, value string }{{"k8s.pod.name", s.Pod}, {"k8s.namespace.name", s.Namespace}, {"host.name", hostName()}} {
		if a.value != "" {
			known = append(known, attribute.String(a.name, a.value))
		}
	}
	r, err := resource.New(context.Background(), resource.WithAttributes(known...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return r, errors.New("invalid value of OTEL_RESOURCE_ATTRIBUTES: must be a list of NAME=VALUE, with values encoded as in URLs")
	}
	return r, nil
}

// hostName is that of this machine or pod, empty if unknown.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// refuse is an exporter in place of one that can't be made.
type refuse struct{ err error }

// ExportSpans implements sdktrace.SpanExporter.
func (r refuse) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return r.err }

// Shutdown implements sdktrace.SpanExporter.
func (refuse) Shutdown(context.Context) error { return nil }
