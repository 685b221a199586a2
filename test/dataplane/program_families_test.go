package dataplane_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A knownFamily is one of ingress-nginx, by test/compat/metrics.tsv.
type knownFamily struct {
	kind      string
	labels    []string
	condition string
	// buckets are those of a histogram by default.
	buckets []string
}

// knownFamilies has those that are not removed, by name. Names that end in "_" stand for all
// that begin so.
func knownFamilies(t *testing.T) map[string]knownFamily {
	t.Helper()
	text, err := os.ReadFile("../compat/metrics.tsv")
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]knownFamily{}
	remarks := regexp.MustCompile(` *\([^)]*\)`)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 7 {
			t.Fatalf("the line %q is broken", line)
		}
		if cells[0] == "metric" || strings.HasPrefix(cells[6], "removed") {
			continue
		}
		f := knownFamily{kind: cells[1], condition: cells[6]}
		if flag, list, is := strings.Cut(cells[3], "-buckets "); is && strings.HasPrefix(flag, "--") {
			list, _, _ = strings.Cut(list, ";")
			f.buckets = strings.Fields(list)
		}
		if labels := remarks.ReplaceAllString(cells[2], ""); labels != "-" {
			f.labels = strings.Split(labels, ", ")
			slices.Sort(f.labels)
		}
		name, _, _ := strings.Cut(cells[0], "*")
		families[name] = f
	}
	return families
}

// scrape reads all metrics.
func (p *program) scrape() map[string]*dto.MetricFamily {
	p.t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(p.metrics()))
	if err != nil {
		p.t.Fatal(err)
	}
	return families
}

// isUnder reports whether a condition holds, of those in metrics.tsv.
func isUnder(condition string, enabled, reviewed bool) bool {
	switch condition {
	case "always":
		return true
	case "--enable-metrics":
		return enabled
	case "--enable-metrics and webhook traffic", "--enable-metrics and --validating-webhook":
		return enabled && reviewed
	}
	return false
}

// compareFamilies compares a scrape with ingress-nginx: names, types, labels and when a family
// is there.
func compareFamilies(t *testing.T, known map[string]knownFamily, got map[string]*dto.MetricFamily, enabled, reviewed bool) {
	t.Helper()
	for name, f := range known {
		if strings.HasSuffix(name, "_") {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(n string) bool { return strings.HasPrefix(n, name) }) {
				t.Errorf("there is no %s*", name)
			}
			continue
		}
		of, found := got[name]
		if wanted := isUnder(f.condition, enabled, reviewed); found != wanted {
			t.Errorf("%s: %v, want %v (%s)", name, found, wanted, f.condition)
		}
		if !found {
			continue
		}
		if kind := strings.ToLower(of.GetType().String()); kind != f.kind {
			t.Errorf("%s is a %s, want a %s", name, kind, f.kind)
		}
		for _, m := range of.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			if !slices.Equal(labels, f.labels) {
				t.Errorf("%s has the labels %q, want %q", name, labels, f.labels)
			}
		}
	}
	for name := range got {
		if _, found := known[name]; strings.HasPrefix(name, "nginx_ingress_controller_") && !found {
			t.Errorf("ingress-nginx has no %s", name)
		}
	}
}

// differentFamilies adapts what ingress-nginx does to what docs/differences.md says.
func differentFamilies(t *testing.T, known map[string]knownFamily) {
	t.Helper()
	const prefix = "nginx_ingress_controller_"
	for _, name := range []string{"ssl_expire_time_seconds", "ssl_certificate_info"} {
		f := known[prefix+name]
		f.condition = "always"
		known[prefix+name] = f
	}
	for _, name := range []string{"read_bytes_total", "write_bytes_total"} {
		if os.Geteuid() != 0 {
			delete(known, prefix+"nginx_process_"+name)
		}
	}
	// There is no election in a folder.
	f := known[prefix+"leader_election_status"]
	if f.kind != "gauge" || !slices.Contains(f.labels, "name") {
		t.Error("metrics.tsv is not as expected")
	}
	f.condition = "an election"
	known[prefix+"leader_election_status"] = f
}

// checkFamilies compares all metrics of a program with those of ingress-nginx.
func checkFamilies(t *testing.T, binary string) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "webhook", "web.test")
	manifests := served("one", headgatetest.StartEcho(t, "one")) + headgatetest.TLSSecret("web", pair) +
		headgatetest.WithTLS(headgatetest.Ingress("web", "web.test", "/", "one", "ssl-redirect: false"), "web web.test") +
		headgatetest.Ingress("orphan", "orphan.test", "/", "missing")
	for _, enabled := range []bool{false, true} {
		webhook, flags := webhookFlags(t, pair)
		if enabled {
			flags = append(flags, "--enable-metrics")
		}
		known := knownFamilies(t)
		differentFamilies(t, known)
		p := startProgram(t, binary, manifests, flags...)
		p.open(true)
		p.wantHealth("with NGINX", http.StatusOK, "ok")
		response, err := p.ask("web.test", "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if enabled {
			headgatetest.Eventually(t, "the request is counted", func() bool { return p.scrape()["nginx_ingress_controller_requests"] != nil })
		}
		for _, host := range []string{"a.test", "not a name"} {
			review(t, webhook, host)
		}
		all := p.scrape()
		compareFamilies(t, known, all, enabled, true)
		if enabled {
			p.checkValues(all)
			p.write("manifests/more.yaml", headgatetest.Ingress("more", "more.test", "/", "one", "proxy-body-size: 3m"), 0o644)
			headgatetest.Eventually(t, "NGINX is reloaded", func() bool {
				all = p.scrape()
				return p.value(all, "nginx_ingress_controller_success") == 2 && p.value(all, "headgate_synced") == 1 &&
					p.value(all, "headgate_propagation_seconds", "kind=Ingress") > 0
			})
			p.checkOwn(all)
		}
		comparePage(t, all)
		p.end()
	}
}

// webhookFlags have a program serve the webhook at a port.
func webhookFlags(t *testing.T, pair headgatetest.KeyPair) (port uint16, flags []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cert": pair.Certificate, "key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port = porttest.Free(t)
	return port, []string{
		fmt.Sprintf("--validating-webhook=127.0.0.1:%d", port), "--validating-webhook-certificate=" + filepath.Join(dir, "cert"), "--validating-webhook-key=" + filepath.Join(dir, "key"),
	}
}

// review sends an Ingress for a host to a webhook.
func review(t *testing.T, port uint16, host string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"default","name":"new",
"kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"object":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"new","namespace":"default"},
"spec":{"ingressClassName":"nginx","rules":[{"host":%q,"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"one","port":{"number":80}}}}]}}]}}}}`, host)
	headgatetest.Eventually(t, "the webhook decides", func() bool {
		response, err := client.Post(fmt.Sprintf("https://127.0.0.1:%d/", port), "application/json", bytes.NewBufferString(body))
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// comparePage compares the types of Headgate's own metrics with docs/metrics.md.
func comparePage(t *testing.T, all map[string]*dto.MetricFamily) {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range all {
		row := fmt.Sprintf("\n| `%s` | %s |", name, strings.ToLower(f.GetType().String()))
		if strings.HasPrefix(name, "headgate_") && !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md lacks %q", row)
		}
	}
}

// checkOwn looks at Headgate's own metrics after a change that needed a reload.
func (p *program) checkOwn(all map[string]*dto.MetricFamily) {
	p.t.Helper()
	for name, least := range map[string]float64{
		"headgate_propagation_seconds kind=Ingress": 1, "headgate_build_duration_seconds kind=host": 2, "headgate_reload_reasons_total reason=profile": 1,
		"headgate_nginx_generation": 2, "headgate_profiles": 2, "headgate_push_bytes": 2,
	} {
		name, label, _ := strings.Cut(name, " ")
		if got := p.value(all, name, strings.Fields(label)...); got < least {
			p.t.Errorf("%s is %v, want %v or more", name, got, least)
		}
	}
}

// value is that of the first sample with some labels, the count of a histogram; -1 if there is none.
func (p *program) value(all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range all[name].GetMetric() {
		var has []string
		for _, l := range m.GetLabel() {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

// checkValues looks at what a running NGINX must say, and a reload.
func (p *program) checkValues(all map[string]*dto.MetricFamily) {
	p.t.Helper()
	value := func(name string, labels ...string) float64 {
		return p.value(all, "nginx_ingress_controller_"+name, labels...)
	}
	for name, least := range map[string]float64{
		"build_info": 1, "config_hash": 1, "config_last_reload_successful": 1, "config_last_reload_successful_timestamp_seconds": 1e9,
		"success": 1, "nginx_process_num_procs": 2, "nginx_process_cpu_seconds_total": 0.01, "nginx_process_resident_memory_bytes": 1e6,
		"nginx_process_virtual_memory_bytes": 1e6, "nginx_process_oldest_start_time_seconds": 1e9, "nginx_process_requests_total": 3,
		"admission_tested_ingresses": 1, "admission_render_ingresses": 1, "admission_roundtrip_duration": 1e-9, "admission_tested_duration": 1e-9, "admission_render_duration": 1e-9,
	} {
		if got := value(name); got < least {
			p.t.Errorf("%s is %v, want %v or more", name, got, least)
		}
	}
	for _, state := range []string{"accepted", "handled"} {
		if got := value("nginx_process_connections_total", "state="+state); got < 2 {
			p.t.Errorf("%v connections are %s", got, state)
		}
	}
	if got := value("nginx_process_connections", "state=active"); got < 1 {
		p.t.Errorf("%v connections are active", got)
	}
	if got := value("errors"); got != 0 {
		p.t.Errorf("%v reloads failed", got)
	}
	for name, labels := range map[string][]string{
		"orphan_ingress": {"namespace=default", "ingress=orphan", "type=no-service"},
		"check_success":  {"namespace=default", "ingress=new"}, "check_errors": {"namespace=default", "ingress=new"},
	} {
		if got := value(name, labels...); got < 1 {
			p.t.Errorf("%s is %v", name, got)
		}
	}
	if got := len(all["nginx_ingress_controller_orphan_ingress"].GetMetric()); got != 1 {
		p.t.Errorf("%d orphans", got)
	}
}
