package docgen

// annotationDifferences returns the annotations whose risk, default or effect of
// invalid values differs from ingress-nginx.
func annotationDifferences() []difference {
	opened := "in ingress-nginx an invalid value disabled the whole authentication, and the paths were open"
	adds := "it does not control access: without it no other client reaches the paths"
	inspects := "in ingress-nginx an invalid value switched the inspection off"
	return []difference{
		{"auth-always-set-cookie", "bad value", "deny", "default", opened},
		{"auth-cache-duration", "bad value", "deny", "default", opened},
		{"auth-request-redirect", "bad value", "deny", "default", opened},
		{"backend-protocol", "default", "", "HTTP", "without it the appProtocol of the Service's port decides, unless use-app-protocol is false"},
		{"client-body-buffer-size", "bad value", "default", "deny", adds},
		{"connection-proxy-header", "bad value", "default", "deny", adds},
		{"custom-http-errors", "bad value", "default", "deny", adds},
		{"default-backend", "bad value", "default", "deny", adds},
		{"enable-modsecurity", "bad value", "deny", "default", inspects},
		{"enable-owasp-core-rules", "bad value", "deny", "default", inspects},
		{"from-to-www-redirect", "bad value", "default", "deny", adds},
		{"http2-push-preload", "bad value", "default", "deny", adds},
		{"load-balance", "bad value", "default", "deny", adds},
		{"modsecurity-snippet", "bad value", "deny", "default", "in ingress-nginx NGINX rejected the configuration of all tenants"},
		{"opentelemetry-operation-name", "bad value", "default", "deny", adds},
		{"permanent-redirect-code", "bad value", "default", "deny", adds},
		{"proxy-ssl-verify", "bad value", "deny", "default", "in ingress-nginx a value such as true verified nothing"},
		{"relative-redirects", "bad value", "default", "deny", adds},
		{"server-alias", "bad value", "default", "deny", adds},
		{"temporal-redirect-code", "bad value", "default", "deny", adds},
		{"upstream-hash-by", "bad value", "default", "deny", adds},
		{"upstream-hash-by-subset", "bad value", "default", "deny", adds},
		{"upstream-hash-by-subset-size", "bad value", "default", "deny", adds},
		{"x-forwarded-prefix", "bad value", "default", "deny", adds},
	}
}

// keyDifferences returns the keys whose defaults differ from ingress-nginx.
func keyDifferences() []difference {
	return []difference{
		{"enable-aio-write", "default", "false", "true", "threads for writing cost memory in each worker, and only responses that exceed the buffers are written"},
		{"lua-shared-dicts", "default", "", "configuration_data 20M, certificate_data 20M, certificate_servers 5M, ocsp_response_cache 5M, balancer_ewma 10M, balancer_ewma_last_touched_at 10M, balancer_ewma_locks 1M", "Headgate's shared memory has other parts"},
		{"error-log-level", "default", "", "notice", "as in ingress-nginx, -v decides without it"},
	}
}
