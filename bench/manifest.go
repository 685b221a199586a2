package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	namespace = "bench"
	backend   = namespace + "/web/80"
)

// hostName is the name of the i-th exact host.
func hostName(i int) string { return fmt.Sprintf(exactRouting.asked, i) }

// profileHost has a profile of its own.
const profileHost = "p-00001.example.com"

// A routing is a kind of host: what a rule of the i-th is like, and what is
// asked of it.
type routing struct {
	host        string // with the number for %05d
	asked, path string // of a request
	metadata    string
	paths       []string
}

var (
	exactRouting    = routing{host: "h-%05d.example.com", asked: "h-%05d.example.com", path: "/", paths: []string{"/"}}
	wildcardRouting = routing{host: `"*.w-%05d.example.com"`, asked: "any.w-%05d.example.com", path: "/", paths: []string{"/"}}
	patternRouting  = routing{
		host: "r-%05d.example.com", asked: "r-%05d.example.com", path: "/api/v2/items/17",
		metadata: "  annotations: {nginx.ingress.kubernetes.io/use-regex: \"true\"}\n",
		paths:    []string{"/", "/api/v[0-9]+/.*", "/static"},
	}
)

// keepConnections is the option for clients that send any number of requests over a
// connection.
const keepConnections = `keep-alive-requests: "1000000"`

// writeFolder writes hosts Ingresses of each routing, each in a file, one
// Service and the options.
func writeFolder(folder string, hosts, port int, accessLog bool, routings ...routing) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	files := map[string]string{
		"web.yaml":     service(port),
		"options.yaml": configMap(accessLog),
		"profile.yaml": ingress("profile", profileHost, `  annotations: {nginx.ingress.kubernetes.io/proxy-buffer-size: 8k}`+"\n"),
	}
	for kind, r := range routings {
		for i := range hosts {
			name := fmt.Sprintf("i-%d-%05d", kind, i)
			files[name+".yaml"] = ingress(name, fmt.Sprintf(r.host, i), r.metadata, r.paths...)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the manifests: %w", err)
		}
	}
	return nil
}

// ingress has the path "/" if none is named.
func ingress(name, host, metadata string, paths ...string) string {
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	text := fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
  namespace: %s
%sspec:
  rules:
    - host: %s
      http:
        paths:
`, name, namespace, metadata, host)
	for _, path := range paths {
		text += fmt.Sprintf(`          - path: %s
            pathType: ImplementationSpecific
            backend:
              service: {name: web, port: {number: 80}}
`, path)
	}
	return text
}

// annotated is what metadata has for annotations, "NAME: VALUE".
func annotated(annotations []string) string {
	if len(annotations) == 0 {
		return ""
	}
	text := "  annotations:\n"
	for _, annotation := range annotations {
		name, value, _ := strings.Cut(annotation, ": ")
		text += fmt.Sprintf("    nginx.ingress.kubernetes.io/%s: %q\n", name, value)
	}
	return text
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

// configMap has the options. further are keys with values, in YAML.
func configMap(accessLog bool, further ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: headgate, namespace: %s}
data: {%s}
`, namespace, strings.Join(append(further, `worker-processes: "1"`, fmt.Sprintf(`disable-access-log: "%t"`, !accessLog)), ", "))
}
