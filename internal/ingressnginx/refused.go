package ingressnginx

import (
	"strings"
	"sync"
)

// A Refusal has settings of ingress-nginx that Headgate will not have.
type Refusal struct {
	Names []string
	// Reason is half a sentence, with names of settings in backquotes: what became of
	// them, and what to use instead.
	Reason string
}

// RefusedAnnotation returns why Headgate will not have an annotation, in plain text, and
// false for others.
func RefusedAnnotation(name string) (string, bool) {
	reason, ok := annotationReasons()[name]
	return reason, ok
}

// RefusedKey returns why Headgate will not have a ConfigMap key, in plain text, and false
// for others.
func RefusedKey(name string) (string, bool) {
	reason, ok := keyReasons()[name]
	return reason, ok
}

var (
	annotationReasons = sync.OnceValue(func() map[string]string { return reasons(RefusedAnnotations()) })
	keyReasons        = sync.OnceValue(func() map[string]string { return reasons(RefusedKeys()) })
)

func reasons(refused []Refusal) map[string]string {
	byName := map[string]string{}
	for _, r := range refused {
		for _, name := range r.Names {
			byName[name] = strings.ReplaceAll(r.Reason, "`", "")
		}
	}
	return byName
}

// noStream is why lines of a block stream have no place.
const noStream = "NGINX serves no TCP here, since Headgate serves TCP and UDP itself: use `--tcp-services-configmap` and `--udp-services-configmap`"

// RefusedAnnotations are the annotations that Headgate will not have.
func RefusedAnnotations() []Refusal {
	return []Refusal{
		{[]string{"secure-backends"}, "ingress-nginx removed it in 0.21: use `backend-protocol: HTTPS`"},
		{[]string{"grpc-backend"}, "ingress-nginx removed it in 0.21: use `backend-protocol: GRPC`"},
		{[]string{"add-base-url", "base-url-scheme"}, "ingress-nginx removed it in 0.22; Headgate does not rewrite response bodies"},
		{[]string{"session-cookie-hash"}, "ingress-nginx removed it in 0.24: the cookie no longer depends on a hash function"},
		{[]string{"mirror-uri"}, "ingress-nginx removed it in 0.28.1: use `mirror-target`"},
		{[]string{"secure-verify-ca-secret"}, "ingress-nginx removed it: use `proxy-ssl-secret` and `proxy-ssl-verify`"},
		{
			[]string{"enable-influxdb", "influxdb-host", "influxdb-measurement", "influxdb-port", "influxdb-server-name"},
			"ingress-nginx removed it in 1.7.1: use the metrics of `--enable-metrics`, or the access log",
		},
		{[]string{"stream-snippet"}, noStream},
		{[]string{"enable-opentracing"}, "ingress-nginx removed it in 1.10: use `enable-opentelemetry`"},
		{[]string{"opentracing-trust-incoming-span"}, "ingress-nginx removed it in 1.10: use `opentelemetry-trust-incoming-span`"},
	}
}

// RefusedKeys are the ConfigMap keys that Headgate will not have.
func RefusedKeys() []Refusal {
	const openTelemetry = "ingress-nginx removed it in 1.10 with OpenTracing: use "
	return []Refusal{
		{[]string{"stream-snippet"}, noStream},
		{
			[]string{"app-root", "upstream-hash-by", "upstream-hash-by-subset", "upstream-hash-by-subset-size"},
			"ingress-nginx ignored it: only the annotation of the same name has an effect",
		},
		{[]string{"bind-address-ipv4", "bind-address-ipv6"}, "it is internal to ingress-nginx: use `bind-address` for addresses of both families"},
		{[]string{"proxy-pass-params"}, "ingress-nginx removed it in 2018: nothing replaces it"},
		{[]string{"enable-vts-status", "vts-default-filter-key", "vts-status-zone-size", "vts-sum-key"}, "ingress-nginx removed it in 2018: use the metrics of `--enable-metrics`"},
		{[]string{"upstream-fail-timeout", "upstream-max-fails"}, "ingress-nginx removed it in 2018: readiness probes decide which endpoints get requests, and Headgate's key `ejection` avoids those that fail"},
		{[]string{"use-brotli"}, "ingress-nginx renamed it in 2017: use `enable-brotli`"},
		{[]string{"proxy-buffer-number"}, "ingress-nginx renamed it in 2019: use `proxy-buffers-number`"},
		{[]string{"disable-lua-resty-waf"}, "ingress-nginx removed it in 2019: use `enable-modsecurity`"},
		{[]string{"enable-dynamic-tls-records"}, "ingress-nginx removed it in 2019: use `ssl-buffer-size`"},
		{[]string{"enable-influxdb"}, "ingress-nginx removed it in 2020: use the metrics of `--enable-metrics`, or the access log"},
		{[]string{"enable-snippet-directives"}, "ingress-nginx renamed it in 2021: use `allow-snippet-annotations`"},
		{
			[]string{"enable-pathtype-validation", "disable-pathtype-validation", "path-additional-allowed-chars"},
			"ingress-nginx had it for a month in 2023: use `strict-validate-path-type`",
		},
		{[]string{"use-geoip"}, "ingress-nginx removed it in 1.10, since its databases are no longer published: use `use-geoip2`"},
		{[]string{"enable-opentracing"}, openTelemetry + "`enable-opentelemetry`"},
		{[]string{"opentracing-operation-name", "opentracing-location-operation-name"}, openTelemetry + "`opentelemetry-operation-name`"},
		{[]string{"opentracing-trust-incoming-span"}, openTelemetry + "`opentelemetry-trust-incoming-span`"},
		{
			[]string{"datadog-collector-host", "jaeger-collector-host", "jaeger-endpoint", "zipkin-collector-host"},
			openTelemetry + "`otlp-collector-host`",
		},
		{[]string{"datadog-collector-port", "jaeger-collector-port", "zipkin-collector-port"}, openTelemetry + "`otlp-collector-port`"},
		{[]string{"datadog-service-name", "jaeger-service-name", "zipkin-service-name"}, openTelemetry + "`otel-service-name`"},
		{[]string{"datadog-sample-rate", "jaeger-sampler-param", "zipkin-sample-rate"}, openTelemetry + "`otel-sampler-ratio`"},
		{[]string{"datadog-priority-sampling", "jaeger-sampler-type"}, openTelemetry + "`otel-sampler`"},
		{[]string{"datadog-operation-name-override"}, openTelemetry + "`opentelemetry-operation-name`"},
		{
			[]string{
				"datadog-environment", "jaeger-baggage-header", "jaeger-debug-header", "jaeger-propagation-format", "jaeger-sampler-host",
				"jaeger-sampler-port", "jaeger-trace-context-header-name", "jaeger-tracer-baggage-header-prefix",
			},
			openTelemetry + "`enable-opentelemetry`, which has no such setting",
		},
		{[]string{"plugins"}, "ingress-nginx removed it in 1.12: Lua code of third parties would have access to all private keys"},
		{
			[]string{
				"global-rate-limit-memcached-connect-timeout", "global-rate-limit-memcached-host", "global-rate-limit-memcached-max-idle-timeout",
				"global-rate-limit-memcached-pool-size", "global-rate-limit-memcached-port",
			},
			"ingress-nginx removed it in 1.12: `global-rate-limit` counts in Redis or Valkey, see the flag `--limit-store`",
		},
	}
}
