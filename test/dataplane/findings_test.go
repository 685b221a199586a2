package dataplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

const oldIngress = `---
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata: {name: old}
spec:
  rules:
  - host: old.test
    http: {paths: [{path: /, backend: {serviceName: one, servicePort: 80}}]}
`

const newIngress = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: old}
spec:
  rules:
  - host: old.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`

// Three hosts, and one annotation that none of them can use.
const oddIngress = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: odd
  annotations: {nginx.ingress.kubernetes.io/proxy-body-size: odd}
spec:
  rules:
  - &rule
    host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
  - {<<: *rule, host: b.test}
  - {<<: *rule, host: c.test}
`

// Findings are logged once, and are in the metric and on the socket while they
// exist.
func checkFindings(t *testing.T, binary string) {
	t.Parallel()
	backend := served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Config()
	p := startProgram(t, binary, backend+oddIngress)
	p.write("manifests/old.yaml", oldIngress, 0o644)
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	old := finding.Finding{Object: "ingress/default/old", Field: "apiVersion", Code: finding.OldVersion}
	odd := finding.Finding{Object: "ingress/default/odd", Field: "nginx.ingress.kubernetes.io/proxy-body-size", Code: finding.InvalidValue}
	p.wantFindings("at the start", odd, old)
	p.wantLogged(`msg=serving http=`+fmt.Sprint(p.http), 1)
	p.wantLogged("using the \\\"epoll\\\" event method", 0)

	// NGINX's end and another object's change are not reported.
	master := p.master()
	kill(t, -master, syscall.SIGKILL)
	headgatetest.Eventually(t, "there is another NGINX", func() bool { return p.healthy() && p.master() != master })
	p.write("manifests/all.yaml", backend+strings.ReplaceAll(oddIngress, "b.test", "d.test"), 0o644)
	l := &line{port: p.http}
	defer l.close()
	headgatetest.Eventually(t, "d.test is served", func() bool { return l.post("d.test") == nil })
	p.wantFindings("with another NGINX", odd, old)
	for _, f := range []finding.Finding{odd, old} {
		p.wantLogged(fmt.Sprintf("object=%s field=%s code=%s effect=", f.Object, f.Field, f.Code), 1)
	}
	p.wantLogged("finding resolved", 0)

	p.write("manifests/old.yaml", newIngress, 0o644)
	p.wantFindings("without an old version", odd)
	p.wantLogged("finding resolved", 1)

	p.write("manifests/bad.yaml", "a: b: c\n", 0o644)
	bad := finding.Finding{Object: "file/bad.yaml", Field: "line 1", Code: finding.BadManifest}
	p.wantFindings("with a broken file", bad, odd)
	p.wantLogged(`effect="the part that can't be read is not served"`, 1)
	if err := os.Remove(filepath.Join(p.folder, "bad.yaml")); err != nil {
		t.Fatal(err)
	}
	p.wantFindings("without it", odd)

	socket := filepath.Join(p.dir, "sock", "controller.sock")
	p.end()
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func (p *program) healthy() bool {
	status, _ := p.health()
	return status == http.StatusOK
}

// wantFindings waits until the socket has these, with any message, and the
// metric agrees.
func (p *program) wantFindings(when string, want ...finding.Finding) {
	p.t.Helper()
	counts := map[finding.Code]int{finding.OldVersion: 0}
	for _, f := range want {
		counts[f.Code]++
	}
	var diff string
	headgatetest.Eventually(p.t, when+" the findings are as they should be", func() bool {
		got := p.findings()
		for i := range got {
			got[i].Message, got[i].Effect = "", ""
		}
		diff = cmp.Diff(want, got)
		if metrics := p.metrics(); diff == "" {
			for code, n := range counts {
				if line := fmt.Sprintf("headgate_findings{code=%q} %d\n", code, n); !strings.Contains(metrics, line) {
					diff = "the metrics lack " + line
				}
			}
		}
		return diff == ""
	})
}

func (p *program) wantLogged(text string, times int) {
	p.t.Helper()
	logged := func() int { return strings.Count(p.log.String(), text) }
	headgatetest.Eventually(p.t, fmt.Sprintf("%q is logged", text), func() bool { return logged() >= times })
	if n := logged(); n != times {
		p.t.Errorf("%q was logged %d times, want %d", text, n, times)
	}
}

// findings are what the controller's socket has.
func (p *program) findings() []finding.Finding {
	p.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, "sock", "controller.sock"))
	}}
	response, err := (&http.Client{Transport: transport}).Get("http://controller/v1/findings")
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var all struct{ Findings []finding.Finding }
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		p.t.Fatal(err)
	}
	return all.Findings
}

func (p *program) metrics() string {
	p.t.Helper()
	response, err := http.Get("http://" + headgatetest.Address(p.healthz) + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
