package featuretest

import (
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// Directory is the directory of a feature below internal/feature. Most have its name.
func Directory(f feature.Feature) string {
	others := map[string]string{
		"worker_process": "worker", "status_page": "nginxstatus", "client_location": "geoip", "error_messages": "errorlog",
		"request_log": "accesslog", "known_requests": "requestheaders", "tcp_udp": "stream", "client_certificate": "clientcert",
		"snippet_steps": "snippet", "snippet_access": "snippet", "snippet_bypass": "snippet", "snippet_settings": "snippet", "snippet_effects": "snippet",
	}
	if other := others[f.Name]; other != "" {
		return other
	}
	return strings.ReplaceAll(f.Name, "_", "")
}
