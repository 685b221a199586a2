package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// A featureRow is an Ingress with annotations, and how it is asked.
type featureRow struct {
	name        string
	annotations []string
	// path is the Ingress's, "/" if it is empty.
	path string
	// asked is what is put before the host's name when it is asked for.
	asked   string
	method  string
	headers []string
	// beside are further objects; HOST is the row's, NAME one for an object of it.
	beside string
}

var featureRows = []featureRow{
	{name: "use-regex", annotations: []string{"use-regex: true"}, path: `"/[a-z]*"`},
	{name: "rewrite-target with a group", annotations: []string{"rewrite-target: /$1"}, path: `"/(.*)"`},
	{name: "app-root, its redirect", annotations: []string{"app-root: /app"}},
	{name: "permanent-redirect", annotations: []string{"permanent-redirect: https://new.example.com/"}},
	{name: "from-to-www-redirect, its alias", annotations: []string{"from-to-www-redirect: true"}, asked: "www."},
	{name: "timeouts and tries", annotations: []string{"proxy-read-timeout: 30", "proxy-next-upstream-tries: 2"}},
	{name: "canary, half of the requests", beside: canary("one", "canary-weight", "50")},
	{name: "canary by a header", headers: []string{"X-Next: always"}, beside: canary("one", "canary-by-header", "X-Next")},
	{name: "three canaries, the last by a cookie", headers: []string{"Cookie: last=always"}, beside: canary("one", "canary-by-header", "X-One") +
		"---\n" + canary("two", "canary-by-header", "X-Two") + "---\n" + canary("last", "canary-by-cookie", "last")},
	{name: "upstream-vhost", annotations: []string{"upstream-vhost: other.example.com"}},
	{name: "cors, with an Origin", annotations: []string{"enable-cors: true"}, headers: []string{"Origin: https://a.example.com"}},
	{name: "cors, a preflight request", annotations: []string{"enable-cors: true"}, method: "OPTIONS",
		headers: []string{"Origin: https://a.example.com", "Access-Control-Request-Method: PUT"}},
	{name: "custom-headers, one", annotations: []string{"custom-headers: bench/headers"}, beside: `apiVersion: v1
kind: ConfigMap
metadata: {name: headers, namespace: bench}
data: {X-Custom: "1"}
`},
	{name: "proxy-cookie-path and proxy-redirect", annotations: []string{
		"proxy-cookie-path: /a /b", "proxy-redirect-from: http://a/", "proxy-redirect-to: http://b/",
	}},
	{name: "external authentication", annotations: []string{"auth-url: http://auth.bench.svc.cluster.local/"}},
	{name: "external authentication by the host itself", annotations: []string{"auth-url: http://$host/oauth2/auth"}, beside: oauth},
}

// canary is an Ingress beside the row's, with the Service of that name.
func canary(name, annotation, value string) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: NAME-%[1]s
  namespace: bench
  annotations: {nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/%[2]s: %[3]q}
spec:
  rules:
    - host: HOST
      http: {paths: [{path: /, pathType: ImplementationSpecific, backend: {service: {name: %[1]s, port: {number: 80}}}}]}
`, name, annotation, value)
}

// oauth is a route for the row's checks, of its own host.
const oauth = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: NAME-oauth, namespace: bench}
spec:
  rules:
    - host: HOST
      http: {paths: [{path: /oauth2, pathType: Prefix, backend: {service: {name: auth, port: {number: 80}}}}]}
`

// maxOff is what a request may cost more, as a ratio, where other hosts have
// features: what is not on is not to be felt.
const maxOff = 1.05

// measureFeatures compares what each feature costs a request that it takes part
// in with a request of a plain route, among 10,000 hosts of one Headgate; and the
// latter with one of a Headgate without features.
func measureFeatures(ctx context.Context, s *stage, n size) ([]CPURow, error) {
	defer s.stopFrom(len(s.processes))
	auth, end, err := startAuthService()
	if err != nil {
		return nil, err
	}
	defer end()
	_, without, err := s.startWithHosts(ctx, "no-features", false, exactRouting)
	if err != nil {
		return nil, err
	}
	at, err := s.place("features")
	if err != nil {
		return nil, err
	}
	if err := writeFolder(at.folder, hosts, s.backend, false, exactRouting); err != nil {
		return nil, err
	}
	if err := writeFeatures(at.folder, auth, s.backend); err != nil {
		return nil, err
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return nil, err
	}
	base := &side{name: "plain", instance: h.instance, host: middle}
	rows := []comparison{{"off: plain, beside all that follow", &side{name: "plain, alone", instance: without.instance, host: middle}, base, maxOff}}
	for i, row := range featureRows {
		one := &side{name: row.name, instance: h.instance, host: row.asked + featureHost(i), method: row.method, headers: row.headers}
		rows = append(rows, comparison{"feature: " + row.name, base, one, 0})
	}
	return s.takeTurns(ctx, "features", rows, n)
}

func featureHost(i int) string { return fmt.Sprintf("f-%05d.example.com", i) }

// writeFeatures writes the manifests of the feature rows. options are further lines of
// the ConfigMap, in YAML.
func writeFeatures(folder string, auth, backend int, options ...string) error {
	for name, port := range map[string]int{"auth": auth, "one": backend, "two": backend, "last": backend} {
		text := strings.ReplaceAll(service(port), "name: web", "name: "+name)
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the Services of features: %w", err)
		}
	}
	allowed := configMap(false, append(options, "global-allowed-response-headers: X-Custom")...)
	if err := os.WriteFile(filepath.Join(folder, "options.yaml"), []byte(allowed), 0o644); err != nil {
		return fmt.Errorf("write the options of features: %w", err)
	}
	for i, row := range featureRows {
		name := fmt.Sprintf("feature-%d", i)
		text := ingress(name, featureHost(i), annotated(row.annotations), cmp.Or(row.path, "/"))
		if row.beside != "" {
			text += "---\n" + strings.NewReplacer("HOST", featureHost(i), "NAME", name).Replace(row.beside)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the manifests of features: %w", err)
		}
	}
	return nil
}

// startAuthService runs a service that lets every request pass, in this
// process: its own CPU is not counted.
func startAuthService() (port int, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("start the authentication service: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().(*net.TCPAddr).Port, func() { _ = server.Close() }, nil
}
