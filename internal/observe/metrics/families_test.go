package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/observe/metrics"
)

const prefix = "nginx_ingress_controller_"

func newFamilies() (*metrics.Families, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return metrics.NewFamilies(registry, metrics.Identity{Namespace: "n", Class: "c", Pod: "p"}, metrics.Build{Release: "1", Commit: "2", Repository: "3"}), registry
}

// values are the samples of a family by the values of some labels.
func values(t *testing.T, from prometheus.Gatherer, family string, labels ...string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != prefix+family {
			continue
		}
		for _, m := range f.GetMetric() {
			of := map[string]string{}
			for _, l := range m.GetLabel() {
				of[l.GetName()] = l.GetValue()
			}
			if of["controller_namespace"] != "n" || of["controller_class"] != "c" || of["controller_pod"] != "p" {
				t.Errorf("%s has the labels %v", family, of)
			}
			var key []string
			for _, l := range labels {
				key = append(key, of[l])
			}
			found[strings.Join(key, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return found
}

func want(t *testing.T, from prometheus.Gatherer, family string, labels []string, wanted map[string]float64) {
	t.Helper()
	if got := values(t, from, family, labels...); fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("%s is %v, want %v", family, got, wanted)
	}
}

// TestConfiguration: there is no value before NGINX runs, and 1 again once what NGINX rejected
// is not wanted any more.
func TestConfiguration(t *testing.T) {
	f, registry := newFamilies()
	last, none := "config_last_reload_successful", map[string]float64{}
	want(t, registry, last, nil, none)
	want(t, registry, "config_hash", nil, none)
	f.Configured(map[string][]byte{"nginx.conf": []byte("a")})
	want(t, registry, last, nil, map[string]float64{"": 1})
	first := values(t, registry, "config_hash")[""]
	f.Rejected()
	want(t, registry, last, nil, map[string]float64{"": 0})
	want(t, registry, "errors", nil, map[string]float64{"": 1})
	f.Unchanged()
	want(t, registry, last, nil, map[string]float64{"": 1})
	want(t, registry, "success", nil, map[string]float64{"": 1})
	f.Configured(map[string][]byte{"nginx.conf": []byte("b")})
	want(t, registry, "success", nil, map[string]float64{"": 2})
	second := values(t, registry, "config_hash")[""]
	f.Configured(map[string][]byte{"nginx.conf": []byte("a")})
	if again := values(t, registry, "config_hash")[""]; again != first || first == second || first == 0 {
		t.Errorf("the hashes are %v, %v and %v", first, second, again)
	}
	if at := values(t, registry, "config_last_reload_successful_timestamp_seconds")[""]; at < 1e9 {
		t.Errorf("the last reload was at %v", at)
	}
}

// TestReviews: counts go with their Ingress, and made up names are not counted by name without end.
func TestReviews(t *testing.T) {
	f, registry := newFamilies()
	by := []string{"namespace", "ingress"}
	for _, family := range []string{"check_success", "admission_config_size"} {
		want(t, registry, family, by, map[string]float64{})
	}
	report := f.Webhook()
	want(t, registry, "check_success", by, map[string]float64{})
	report(metrics.Review{Namespace: "shop", Ingress: "web", Passed: true, Ingresses: 3, Bytes: 400, Build: time.Millisecond, Test: 2 * time.Millisecond, Total: 3 * time.Millisecond})
	report(metrics.Review{Namespace: "shop", Ingress: "web"})
	want(t, registry, "check_success", by, map[string]float64{"shop web": 1})
	want(t, registry, "check_errors", by, map[string]float64{"shop web": 1})
	f.Serve("shop", "web", nil)
	for i := range 200 {
		report(metrics.Review{Namespace: "made", Ingress: fmt.Sprint(i), Passed: true})
	}
	report(metrics.Review{Namespace: "made", Ingress: "\xff", Passed: true})
	report(metrics.Review{Namespace: "made", Ingress: "0", Passed: true})
	got := values(t, registry, "check_success", by...)
	if len(got) != 102 || got["_others _others"] != 101 || got["made 0"] != 2 {
		t.Errorf("%d series, %v of others, %v of a name", len(got), got["_others _others"], got["made 0"])
	}
	f.Remove("shop", "web")
	if got := values(t, registry, "check_success", by...); len(got) != 101 {
		t.Errorf("%d series after the Ingress was deleted", len(got))
	}
	// Names of living Ingresses are always their own.
	f.Serve("shop", "new", nil)
	report(metrics.Review{Namespace: "shop", Ingress: "new"})
	want(t, registry, "check_errors", by, map[string]float64{"shop new": 1})
}

func TestAdmission(t *testing.T) {
	f, registry := newFamilies()
	f.Webhook()(metrics.Review{Ingresses: 3, Bytes: 400, Build: time.Second, Test: 2 * time.Second, Total: 3 * time.Second})
	for name, value := range map[string]float64{
		"tested_ingresses": 3, "render_ingresses": 3, "config_size": 400, "render_duration": 1, "tested_duration": 2, "roundtrip_duration": 3,
	} {
		want(t, registry, "admission_"+name, nil, map[string]float64{"": value})
	}
}

func TestOrphans(t *testing.T) {
	f, registry := newFamilies()
	by := []string{"namespace", "ingress", "type"}
	f.Backend("shop/gone/80", metrics.NoService)
	f.Backend("shop/empty/80", metrics.NoEndpoint)
	f.Serve("shop", "web", []string{"shop/gone/80", "shop/gone/80", "shop/fine/80"})
	f.Serve("shop", "both", []string{"shop/gone/80", "shop/empty/80"})
	want(t, registry, "orphan_ingress", by, map[string]float64{"shop web no-service": 1, "shop both no-service": 1, "shop both no-endpoint": 1})
	f.Backend("shop/gone/80", metrics.None)
	want(t, registry, "orphan_ingress", by, map[string]float64{"shop both no-endpoint": 1})
	f.Remove("shop", "both")
	want(t, registry, "orphan_ingress", by, map[string]float64{})
}

func TestLeader(t *testing.T) {
	f, registry := newFamilies()
	leads := false
	f.Leader("headgate-leader", func() bool { return leads })
	want(t, registry, "leader_election_status", []string{"name"}, map[string]float64{"headgate-leader": 0})
	leads = true
	want(t, registry, "leader_election_status", []string{"name"}, map[string]float64{"headgate-leader": 1})
}

// TestWithoutFamilies: nothing needs to know whether they are enabled.
func TestWithoutFamilies(t *testing.T) {
	var f *metrics.Families
	f.Configured(nil)
	f.Unchanged()
	f.Rejected()
	f.Serve("a", "b", nil)
	f.Remove("a", "b")
	f.Backend("a/b/80", metrics.NoService)
	f.Leader("a", nil)
	if err := f.NGINX(nil, nil); err != nil || f.Webhook() != nil {
		t.Error("a nil Families has metrics")
	}
	if n := testutil.CollectAndCount(metrics.New().Registry, prefix+"build_info"); n != 0 {
		t.Error("they are there without being enabled")
	}
}
