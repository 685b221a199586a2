package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A demo is the running demo with its page.
type demo struct {
	t *testing.T
	// page is the address of the page, http that of NGINX, and folder has the manifests.
	page, http, folder string
}

// startDemo runs what `make demo` runs.
func startDemo(t *testing.T) *demo {
	t.Helper()
	bin := t.TempDir()
	for _, program := range []string{"cmd/headgate", "examples/demo"} {
		if output, err := exec.Command("go", "build", "-o", bin, "../../"+program).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, output)
		}
	}
	command := exec.Command(filepath.Join(bin, "demo"), "-headgate", filepath.Join(bin, "headgate"))
	logs := &headgatetest.Log{}
	command.Stderr = logs
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("the demo: %v\n%s", err, logs.String())
		}
	})
	d := &demo{t: t}
	d.read(output)
	return d
}

// read finds the addresses in what the demo prints.
func (d *demo) read(output io.Reader) {
	d.t.Helper()
	lines := bufio.NewReader(output)
	var text strings.Builder
	for !strings.Contains(text.String(), "Ctrl-C ends the demo") {
		line, err := lines.ReadString('\n')
		if text.WriteString(line); err != nil {
			d.t.Fatalf("%v in\n%s", err, text.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // the access log
	for expression, into := range map[string]*string{
		`page for the browser:\s+(http://localhost:\d+)/`: &d.page, `manifests in (\S+):`: &d.folder, `http://hello\.localhost:(\d+)/`: &d.http,
	} {
		found := regexp.MustCompile(expression).FindStringSubmatch(text.String())
		if found == nil {
			d.t.Fatalf("the demo does not print %s:\n%s", expression, text.String())
		}
		*into = found[1]
	}
}

// write puts a manifest into the folder at once.
func (d *demo) write(name, text string) {
	d.t.Helper()
	temporary := filepath.Join(filepath.Dir(d.folder), name)
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(d.folder, name)); err != nil {
		d.t.Fatal(err)
	}
}

// request sends one to NGINX for a host.
func (d *demo) request(host, path string) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://127.0.0.1:"+d.http+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		d.t.Fatal(err)
	}
	response.Body.Close()
}

// get reads from the page's server.
func (d *demo) get(path string) (int, string) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.page+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// hostile is text that runs a script where it is taken for HTML.
const hostile = `<img src=x onerror=alert(1)>`

// broken is what goes wrong in clusters, with hostile texts: in annotations, in a path and in
// the names of a certificate.
func broken(t *testing.T) string {
	pair := headgatetest.NewKeyPair(t, hostile, "pay.localhost")
	return "---\n" + strings.Join([]string{
		fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: pay
  namespace: payments
  annotations:
    nginx.ingress.kubernetes.io/proxy-read-timeout: %q
spec:
  ingressClassName: nginx
  tls: [{hosts: [pay.localhost], secretName: pay-tls}]
  rules:
  - host: pay.localhost
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: pay, port: {number: 80}}}}
      - {path: '/%s', pathType: ImplementationSpecific, backend: {service: {name: pay, port: {number: 80}}}}
`, hostile, hostile),
		fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: admin
  namespace: payments
  annotations:
    nginx.ingress.kubernetes.io/whitelist-source-range: %q
spec:
  ingressClassName: nginx
  rules:
  - host: admin.localhost
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: pay, port: {number: 80}}}}]}
`, "10.0.0.0/8, "+hostile),
		// Its Secret is missing, it has no path for all requests, and another Ingress has its path too.
		`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: news
  namespace: demo
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations: {nginx.ingress.kubernetes.io/auth-url: "http://127.0.0.1:1/"}
spec:
  ingressClassName: nginx
  tls: [{hosts: [news.localhost], secretName: nesw}]
  rules:
  - host: news.localhost
    http: {paths: [{path: /api, pathType: Prefix, backend: {service: {name: about, port: {number: 80}}}}]}
`,
		`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: news-too, namespace: demo, creationTimestamp: "2026-02-01T00:00:00Z"}
spec:
  ingressClassName: nginx
  rules:
  - host: news.localhost
    http: {paths: [{path: /api, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
`,
		`apiVersion: v1
kind: Service
metadata: {name: pay, namespace: payments}
spec: {selector: {app: pay}, ports: [{port: 80}]}
`,
		strings.Replace(headgatetest.TLSSecret("pay-tls", pair), "{name: pay-tls}", "{name: pay-tls, namespace: payments}", 1),
	}, "---\n")
}
