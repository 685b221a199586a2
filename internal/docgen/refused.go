package docgen

// RefusedAnnotations are the annotations that Headgate will not have.
func RefusedAnnotations() []Refusal {
	return []Refusal{
		{[]string{"secure-backends", "grpc-backend"}, "removed from ingress-nginx in 0.21; use `backend-protocol`."},
		{[]string{"add-base-url", "base-url-scheme"}, "removed from ingress-nginx in 0.22. Headgate does not rewrite response bodies."},
		{[]string{"session-cookie-hash"}, "removed from ingress-nginx in 0.24: the cookie no longer depends on a hash function."},
		{[]string{"mirror-uri"}, "removed from ingress-nginx in 0.28.1; use `mirror-target`."},
		{[]string{"secure-verify-ca-secret"}, "removed from ingress-nginx; use `proxy-ssl-secret` and `proxy-ssl-verify`."},
		{
			[]string{"enable-influxdb", "influxdb-host", "influxdb-measurement", "influxdb-port", "influxdb-server-name"},
			"removed from ingress-nginx in 1.7.1.",
		},
		{
			[]string{"enable-opentracing", "opentracing-trust-incoming-span"},
			"removed from ingress-nginx in 1.10: OpenTelemetry replaced OpenTracing.",
		},
	}
}

// RefusedKeys are the ConfigMap keys that Headgate will not have.
func RefusedKeys() []Refusal {
	return []Refusal{
		{[]string{"app-root", "upstream-hash-by", "upstream-hash-by-subset", "upstream-hash-by-subset-size"}, "ingress-nginx accepted and ignored them; only the annotations have an effect."},
		{[]string{"bind-address-ipv4", "bind-address-ipv6"}, "internal to ingress-nginx; use `bind-address` for addresses of both families."},
		{[]string{"proxy-pass-params"}, "removed from ingress-nginx in 2018."},
		{[]string{"enable-vts-status", "vts-default-filter-key", "vts-status-zone-size", "vts-sum-key"}, "removed from ingress-nginx in 2018: use the Prometheus metrics."},
		{[]string{"upstream-fail-timeout", "upstream-max-fails"}, "removed from ingress-nginx in 2018: Kubernetes decides which endpoints are ready."},
		{[]string{"use-brotli"}, "removed from ingress-nginx in 2017; use `enable-brotli`."},
		{[]string{"proxy-buffer-number"}, "renamed to `proxy-buffers-number` in 2019."},
		{[]string{"disable-lua-resty-waf", "enable-dynamic-tls-records"}, "removed from ingress-nginx in 2019."},
		{[]string{"enable-influxdb"}, "removed from ingress-nginx in 2020."},
		{[]string{"enable-snippet-directives"}, "renamed to `allow-snippet-annotations` in 2021."},
		{
			[]string{"enable-pathtype-validation", "disable-pathtype-validation", "path-additional-allowed-chars"},
			"existed for a month in 2023; use `strict-validate-path-type`.",
		},
		{[]string{"use-geoip"}, "removed from ingress-nginx in 1.10: the old databases are no longer published; `use-geoip2` reads the new ones."},
		{
			[]string{
				"enable-opentracing", "opentracing-location-operation-name", "opentracing-operation-name", "opentracing-trust-incoming-span",
				"zipkin-collector-host", "zipkin-collector-port", "zipkin-sample-rate", "zipkin-service-name",
				"jaeger-baggage-header", "jaeger-collector-host", "jaeger-collector-port", "jaeger-debug-header", "jaeger-endpoint",
				"jaeger-propagation-format", "jaeger-sampler-host", "jaeger-sampler-param", "jaeger-sampler-port", "jaeger-sampler-type",
				"jaeger-service-name", "jaeger-trace-context-header-name", "jaeger-tracer-baggage-header-prefix",
				"datadog-collector-host", "datadog-collector-port", "datadog-environment", "datadog-operation-name-override",
				"datadog-priority-sampling", "datadog-sample-rate", "datadog-service-name",
			},
			"removed from ingress-nginx in 1.10: OpenTelemetry replaced OpenTracing.",
		},
		{[]string{"plugins"}, "removed from ingress-nginx in 1.12: Lua code of third parties would have access to all private keys."},
		{
			[]string{
				"global-rate-limit-memcached-connect-timeout", "global-rate-limit-memcached-host", "global-rate-limit-memcached-max-idle-timeout",
				"global-rate-limit-memcached-pool-size", "global-rate-limit-memcached-port",
			},
			"removed from ingress-nginx in 1.12. `global-rate-limit` counts in Redis or Valkey: use the flag `--limit-store`.",
		},
	}
}
