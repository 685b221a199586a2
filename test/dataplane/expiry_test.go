package dataplane_test

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// TestExpiry: an expired certificate is shown and reported until it is renewed,
// and the metrics name each host with its certificate.
func TestExpiry(t *testing.T) {
	t.Parallel()
	authority := pkitest.New(t)
	until := func(left time.Duration) string {
		return headgatetest.TLSSecret("tls", pairOf(authority.IssueAs(&x509.Certificate{NotAfter: time.Now().Add(left)}, "a.test")))
	}
	g := headgatetest.Start(t, headgatetest.Options{DefaultCertificate: "tls", Manifests: served("a", headgatetest.StartEcho(t, "a")) + until(-time.Minute) +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a", "server-alias: www.a.test"), "tls a.test") +
		headgatetest.WithTLS(headgatetest.Ingress("plain", "plain.test", "/", "a"), "- plain.test")})
	findings := func() int { return g.Value(g.Metrics.Findings.WithLabelValues("Expires")) }
	headgatetest.Eventually(t, "the end is reported", func() bool { return findings() == 1 })
	if got := shown(t, g, "a.test"); got != "a.test" {
		t.Errorf("showed %q", got)
	}
	const metric = "nginx_ingress_controller_ssl_expire_time_seconds"
	families, err := g.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "host" {
					hosts = append(hosts, label.GetValue())
				}
			}
		}
	}
	if got := strings.Join(hosts, " "); got != "_ a.test" {
		t.Errorf("the metric has the hosts %q", got)
	}
	g.Apply(until(90 * 24 * time.Hour))
	headgatetest.Eventually(t, "the renewed one is fine", func() bool { return findings() == 0 })
	g.Apply(until(9 * 24 * time.Hour))
	headgatetest.Eventually(t, "the next end is reported", func() bool { return findings() == 1 })
	g.Delete(until(0))
	headgatetest.Eventually(t, "without the Secret there is nothing to report", func() bool { return findings() == 0 })
	if n, err := testutil.GatherAndCount(g.Metrics.Registry, metric); err != nil || n != 0 {
		t.Errorf("%d hosts are left, %v", n, err)
	}
}
