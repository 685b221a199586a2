package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	namespace = "bench"
	backend   = namespace + "/web/80"
)

// hostName is the name of the i-th host.
func hostName(i int) string { return fmt.Sprintf("h-%05d.example.com", i) }

// profileHost has a profile of its own.
const profileHost = "p-00001.example.com"

// writeFolder writes hosts Ingresses, each in a file, one Service and the
// options.
func writeFolder(folder string, hosts, port int, accessLog bool) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	files := map[string]string{
		"web.yaml":     service(port),
		"options.yaml": options(accessLog),
		"profile.yaml": ingress("profile", profileHost, `  annotations: {nginx.ingress.kubernetes.io/proxy-buffer-size: 8k}`+"\n"),
	}
	for i := range hosts {
		name := fmt.Sprintf("i-%05d", i)
		files[name+".yaml"] = ingress(name, hostName(i), "")
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the manifests: %w", err)
		}
	}
	return nil
}

func ingress(name, host, metadata string) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
  namespace: %s
%sspec:
  rules:
    - host: %s
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service: {name: web, port: {number: 80}}
`, name, namespace, metadata, host)
}

func service(port int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec:
  ports: [{port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: %[1]s, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: %[2]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, namespace, port)
}

func options(accessLog bool) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: headgate, namespace: %s}
data: {worker-processes: "1", disable-access-log: "%t"}
`, namespace, !accessLog)
}
