package reference

// RefusedAnnotations are the annotations that Headgate will not have.
func RefusedAnnotations() []Refusal {
	return []Refusal{
		{[]string{"secure-backends", "grpc-backend"}, "removed from ingress-nginx in 0.21; `backend-protocol` says it."},
		{[]string{"add-base-url", "base-url-scheme"}, "removed from ingress-nginx in 0.22: answers are not rewritten."},
		{[]string{"session-cookie-hash"}, "removed from ingress-nginx in 0.24: its cookies need no choice of a hash."},
		{[]string{"mirror-uri"}, "removed from ingress-nginx in 0.28.1; `mirror-target` says it."},
		{[]string{"secure-verify-ca-secret"}, "removed from ingress-nginx; `proxy-ssl-secret` and `proxy-ssl-verify` say it."},
		{
			[]string{"enable-influxdb", "influxdb-host", "influxdb-measurement", "influxdb-port", "influxdb-server-name"},
			"removed from ingress-nginx in 1.7.1.",
		},
		{
			[]string{"enable-opentracing", "opentracing-trust-incoming-span"},
			"removed from ingress-nginx in 1.10: OpenTracing has ended, OpenTelemetry has taken its place.",
		},
		{
			[]string{"global-rate-limit", "global-rate-limit-ignored-cidrs", "global-rate-limit-key", "global-rate-limit-window"},
			"removed from ingress-nginx in 1.12: they need a memcached, and a request would wait for it.",
		},
	}
}

// RefusedKeys are the ConfigMap keys that Headgate will not have.
func RefusedKeys() []Refusal {
	return []Refusal{
		{[]string{"app-root", "upstream-hash-by", "upstream-hash-by-subset", "upstream-hash-by-subset-size"}, "ingress-nginx took them and never read them; only the annotations count."},
		{[]string{"bind-address-ipv4", "bind-address-ipv6"}, "never meant to be written: `bind-address` has addresses of both kinds."},
		{[]string{"proxy-pass-params"}, "removed from ingress-nginx in 2018."},
		{[]string{"enable-vts-status", "vts-default-filter-key", "vts-status-zone-size", "vts-sum-key"}, "removed from ingress-nginx in 2018: metrics are Prometheus's."},
		{[]string{"upstream-fail-timeout", "upstream-max-fails"}, "removed from ingress-nginx in 2018: endpoints are what Kubernetes says of them."},
		{[]string{"use-brotli"}, "removed from ingress-nginx in 2017; `enable-brotli` says it."},
		{[]string{"proxy-buffer-number"}, "renamed in 2019 to `proxy-buffers-number`."},
		{[]string{"disable-lua-resty-waf", "enable-dynamic-tls-records"}, "removed from ingress-nginx in 2019."},
		{[]string{"enable-influxdb"}, "removed from ingress-nginx in 2020."},
		{[]string{"enable-snippet-directives"}, "renamed in 2021 to `allow-snippet-annotations`."},
		{
			[]string{"enable-pathtype-validation", "disable-pathtype-validation", "path-additional-allowed-chars"},
			"lived for a month in 2023; `strict-validate-path-type` came in their place.",
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
			"removed from ingress-nginx in 1.10: OpenTracing has ended, OpenTelemetry has taken its place.",
		},
		{[]string{"plugins"}, "removed from ingress-nginx in 1.12: Lua of others runs with everybody's secrets."},
		{
			[]string{
				"global-rate-limit-memcached-connect-timeout", "global-rate-limit-memcached-host", "global-rate-limit-memcached-max-idle-timeout",
				"global-rate-limit-memcached-pool-size", "global-rate-limit-memcached-port", "global-rate-limit-status-code",
			},
			"removed from ingress-nginx in 1.12: they need a memcached, and a request would wait for it.",
		},
	}
}
