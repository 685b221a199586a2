package expiry

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/test/pkitest"
)

func newTracker() *tracker.Tracker {
	return tracker.New(slog.New(slog.DiscardHandler), prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "x"}, []string{"code"}))
}

// ends makes a certificate that ends then.
func ends(authority *pkitest.Authority, secret, hash string, at time.Time) *model.Certificate {
	pair := authority.IssueAs(&x509.Certificate{NotAfter: at}, "a.test")
	return &model.Certificate{Hash: hash, Chain: []byte(pair.Chain), Secret: secret}
}

func findingsOf(l *tracker.Tracker) string {
	var list []string
	for _, f := range l.All() {
		list = append(list, f.String())
	}
	return strings.Join(list, "\n")
}

// TestFindings: each certificate has a finding from ten days before its end, and another from
// its end on, however many names show it.
func TestFindings(t *testing.T) {
	authority := pkitest.New(t)
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		l := newTracker()
		w := New("class", l.Update)
		// The clock of the bubble begins elsewhere.
		ahead := time.Until(now)
		w.now = func() time.Time { return time.Now().Add(ahead) }
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		want := func(about string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := findingsOf(l); got != strings.Join(want, "\n") {
				t.Errorf("%s:\n%s\nwant\n%s", about, got, strings.Join(want, "\n"))
			}
		}
		const day = 24 * time.Hour
		end := now.Add(30*day + 90*time.Minute).Truncate(time.Second)
		w.Show("a.test", ends(authority, "shop/tls", "1", end))
		w.Show("b.test", ends(authority, "shop/tls", "1", end))
		w.Show("c.test", &model.Certificate{Hash: "made"})
		want("at first")
		time.Sleep(20 * day)
		want("ten days and a bit before")
		time.Sleep(90 * time.Minute)
		soon := "secret/shop/tls tls.crt Expires: the certificate expires on " + end.UTC().Format(time.RFC3339) + "; clients will reject it then"
		want("ten days before", soon)
		w.Show("a.test", nil)
		want("another name still shows it", soon)
		time.Sleep(10 * day)
		over := strings.ReplaceAll(strings.ReplaceAll(soon, "expires on", "expired on"), "clients will reject it then", "it is still served, and clients reject it")
		want("the end", over)
		w.Show("b.test", ends(authority, "shop/tls", "2", w.now().Add(90*day)))
		want("renewed")
		old := w.now().Add(-time.Hour)
		w.Show("a.test", ends(authority, "shop/old", "3", old))
		want("an old one", "secret/shop/old tls.crt Expires: the certificate expired on "+old.UTC().Format(time.RFC3339)+"; it is still served, and clients reject it")
		w.Show("a.test", nil)
		want("gone")
		cancel()
		synctest.Wait()
		if len(w.certificates) != 1 || len(w.names) != 1 {
			t.Errorf("left are %v and %v", w.names, w.certificates)
		}
	})
}

// TestMetrics: those of ingress-nginx, with its labels.
func TestMetrics(t *testing.T) {
	authority := pkitest.New(t)
	w := New("class", newTracker().Update)
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	c := ends(authority, "shop/tls", "1", end)
	serial := parse(c.Chain).serial
	w.Show("a.test", c)
	w.Show("_", c)
	var lines []string
	for _, host := range []string{"_", "a.test"} {
		lines = append(lines, fmt.Sprintf(`nginx_ingress_controller_ssl_expire_time_seconds{class="class",host=%q,identifier="-%s",namespace="shop",secret_name="tls"} %d`,
			host, serial, end.Unix()))
		lines = append(lines, fmt.Sprintf(`nginx_ingress_controller_ssl_certificate_info{class="class",host=%q,identifier="-%s",issuer_common_name="intermediate",`+
			`issuer_organization="",namespace="shop",public_key_algorithm="ECDSA",secret_name="tls",serial_number="%s"} 1`, host, serial, serial))
	}
	slices.Sort(lines)
	want := "# HELP nginx_ingress_controller_ssl_certificate_info 1 for each host with the certificate of a Secret; the labels have the data of the certificate.\n" +
		"# TYPE nginx_ingress_controller_ssl_certificate_info gauge\n" + strings.Join(lines[:2], "\n") + "\n" +
		"# HELP nginx_ingress_controller_ssl_expire_time_seconds When the certificate of a host expires, as Unix time.\n" +
		"# TYPE nginx_ingress_controller_ssl_expire_time_seconds gauge\n" + strings.Join(lines[2:], "\n") + "\n"
	if err := testutil.CollectAndCompare(w, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	w.Show("_", nil)
	w.Show("a.test", nil)
	if n := testutil.CollectAndCount(w); n != 0 {
		t.Errorf("%d series are left", n)
	}
}
