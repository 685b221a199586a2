package run

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headgate/headgate/internal/command/option"

	"github.com/headgate/headgate/internal/cluster/election"
	"github.com/headgate/headgate/internal/command/run/edges"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/health"
	"github.com/headgate/headgate/internal/observe/linequeue"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/test/clienttest"
	"github.com/headgate/headgate/internal/unit/link"
)

var update = flag.Bool("update", false, "update docs/metrics.md")

const metricsPage = "../../../docs/metrics.md"

// allMetrics are those of a program with all flags that add some.
func allMetrics(t *testing.T) *metrics.Metrics {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := program{Options: option.Options{ManifestsDir: t.TempDir()}}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddMetricsFlags(flags)
	o.EnableMetrics, o.WebhookAddress, o.LimitStore.Address.URL = true, "127.0.0.1:0", "redis://127.0.0.1:1"
	log, m := slog.New(slog.DiscardHandler), metrics.New()
	findings := tracker.New(log, m.Findings)
	lines := linequeue.New(&bytes.Buffer{})
	m.Registry.MustRegister(expiry.New("", findings.Update), droppedLines(lines))
	from, err := o.source(findings, m, log)
	check(err)
	process, tcpAndUDP := nginx.New(nginx.Options{}), newStreams(findings, log)
	m.Registry.MustRegister(tcpAndUDP, tcpAndUDP.dropped())
	r := &replica{elector: election.New(election.Settings{Leases: clienttest.Of(fake.NewClientset()).Leases("headgate")})}
	table, families := o.traffic(m, findings, log), o.families(m.Registry, r)
	o.newSpans(m, log)
	// NGINX's workers have another user.
	path, err := os.MkdirTemp("", "hg-")
	check(err)
	t.Cleanup(func() { os.RemoveAll(path) })
	check(os.Chmod(path, 0o711))
	dir, err := rundir.Open(path)
	check(err)
	t.Cleanup(func() { dir.Close() })
	c := controller.New(controller.Settings{Settings: edge.Settings{Process: process, RunDir: dir, Metrics: m, Families: families, Tracker: findings, Log: log, Traffic: table}})
	registerGauges(m.Registry, c, r)
	server, err := health.Listen("127.0.0.1:0", "/healthz", time.Second, c.Check, m.Registry, table, log)
	check(err)
	t.Cleanup(func() { server.Close() })
	w, err := o.startWebhook(&from, process, m, families, log)
	check(err)
	t.Cleanup(w.close)
	stop, err := o.startLimitStore(dir.Socket(), m.Registry, log)
	check(err)
	t.Cleanup(stop)
	apart, err := edges.Listen("127.0.0.1:0", link.ServerSettings{Log: log}, "", m.Registry)
	check(err)
	t.Cleanup(apart.Close)
	m.Registry.MustRegister(connectedGauge(func() bool { return false }))
	return m
}

// A described metric is a row of the page.
type described struct {
	name, help, kind string
	labels           []string
}

// descriptions are those of all metrics of a registry, sorted.
func descriptions(t *testing.T, m *metrics.Metrics) []described {
	t.Helper()
	kinds := kindsOf(t, m)
	form := regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "[a-z]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constant := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		m.Registry.Describe(all)
	}()
	var list []described
	for d := range all {
		parts := form.FindStringSubmatch(d.String())
		if parts == nil {
			t.Errorf("a description has another form: %s", d)
			continue
		}
		name, err := strconv.Unquote(parts[1])
		help, err2 := strconv.Unquote(parts[2])
		if err != nil || err2 != nil {
			t.Errorf("%s: %v, %v", d, err, err2)
		}
		one := described{name: name, help: help, kind: kinds[name]}
		if one.kind == "" {
			one.kind = "gauge"
			if strings.HasSuffix(name, "_total") || strings.HasPrefix(name, "nginx_ingress_controller_check_") {
				one.kind = "counter"
			}
		}
		for _, label := range constant.FindAllStringSubmatch(parts[3], -1) {
			one.labels = append(one.labels, label[1])
		}
		if parts[4] != "" {
			one.labels = append(one.labels, strings.Split(parts[4], ",")...)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b described) int { return strings.Compare(a.name, b.name) })
	return list
}

// kindsOf are the types of the metrics that have a value, and of all histograms.
func kindsOf(t *testing.T, m *metrics.Metrics) map[string]string {
	t.Helper()
	fields := reflect.ValueOf(m).Elem()
	for i := range fields.NumField() {
		switch vector := fields.Field(i).Interface().(type) {
		case *prometheus.HistogramVec:
			vector.WithLabelValues("")
		}
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	return kinds
}

// tableOf writes the rows of the metrics with a prefix.
func tableOf(all []described, prefix string) string {
	var text strings.Builder
	text.WriteString("| name | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, d := range all {
		if !strings.HasPrefix(d.name, prefix) {
			continue
		}
		var labels []string
		for _, label := range d.labels {
			if !strings.HasPrefix(label, "controller_") {
				labels = append(labels, "`"+label+"`")
			}
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", d.name, d.kind, strings.Join(labels, ", "), strings.ReplaceAll(d.help, "|", `\|`))
	}
	return text.String()
}

// replaceTable puts a table between its marks.
func replaceTable(t *testing.T, page, mark, table string) string {
	t.Helper()
	begin := "<!-- " + mark + ": written by `go test ./internal/command/run -update` from the registry. -->\n\n"
	const end = "\n<!-- end -->\n"
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks of the table %s", metricsPage, mark)
	}
	return before + begin + table + end + after
}

// TestMetricsPage: docs/metrics.md has each metric of the program, and no other one.
func TestMetricsPage(t *testing.T) {
	all := descriptions(t, allMetrics(t))
	for _, d := range all {
		known := []string{"headgate_", traffic.Prefix, "go_", "process_", "promhttp_"}
		if !slices.ContainsFunc(known, func(prefix string) bool { return strings.HasPrefix(d.name, prefix) }) {
			t.Errorf("%s has none of the prefixes %q", d.name, known)
		}
	}
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := replaceTable(t, string(text), "own", tableOf(all, "headgate_"))
	page = replaceTable(t, page, "controller", tableOf(all, traffic.Prefix))
	if *update {
		if err := os.WriteFile(metricsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != string(text) {
		t.Errorf("%s is not what the program has: go test ./internal/command/run -update\n%s", metricsPage, page)
	}
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		named[found[1]] = true
	}
	for _, name := range traffic.Names() {
		if !named[traffic.Prefix+name] {
			t.Errorf("%s lacks %s", metricsPage, name)
		}
	}
	t.Logf("%d metrics", len(all))
}

// TestMetricsRules: Headgate's own metrics keep Prometheus' rules. ingress-nginx's do not.
func TestMetricsRules(t *testing.T) {
	types := map[string]dto.MetricType{"counter": dto.MetricType_COUNTER, "gauge": dto.MetricType_GAUGE, "histogram": dto.MetricType_HISTOGRAM}
	families := map[string]*dto.MetricFamily{}
	for _, d := range descriptions(t, allMetrics(t)) {
		if strings.HasPrefix(d.name, "headgate_") {
			kind := types[d.kind]
			metric := &dto.Metric{}
			for _, label := range d.labels {
				metric.Label = append(metric.Label, &dto.LabelPair{Name: &label})
			}
			families[d.name] = &dto.MetricFamily{Name: &d.name, Help: &d.help, Type: &kind, Metric: []*dto.Metric{metric}}
		}
	}
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if len(families) < 40 {
		t.Errorf("%d metrics", len(families))
	}
}
