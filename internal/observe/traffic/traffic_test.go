package traffic_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// one is what a test's worker has counted of a route.
type one struct {
	labels         map[string]string
	status, method uint32
	cells          map[int]float64
	// natives are pairs of a histogram and a bucket with one value.
	natives [][2]int
}

// report is in the form of lua/headgate/traffic_report.lua.
func report(withoutIngress float64, list ...one) []byte {
	order := binary.NativeEndian
	data := order.AppendUint64(order.AppendUint64(nil, math.Float64bits(withoutIngress)), math.Float64bits(1))
	for _, o := range list {
		labels, err := json.Marshal(o.labels)
		if err != nil {
			panic(err)
		}
		for _, n := range []int{len(labels), len(o.cells), len(o.natives), 0, int(o.status), int(o.method)} {
			data = order.AppendUint32(data, uint32(n))
		}
		for place := range 1000 {
			if count, found := o.cells[place]; found {
				data = order.AppendUint64(order.AppendUint16(data, uint16(place)), math.Float64bits(count))
			}
		}
		for _, n := range o.natives {
			data = order.AppendUint32(order.AppendUint16(data, uint16(n[0])), uint32(int32(n[1])))
			data = order.AppendUint64(data, math.Float64bits(1))
		}
		data = append(data, labels...)
	}
	return data
}

func labelsOf(path string) map[string]string {
	return map[string]string{"unit": "a.test", "host": "a.test", "namespace": "shop", "ingress": "web", "service": "one", "path": path}
}

func settings() traffic.Settings {
	return traffic.Settings{
		Namespace: "ingress", Pod: "pod-1", Class: "k8s.io/ingress-nginx", PerHost: true, Budget: 100,
		Buckets: traffic.Buckets{Time: []float64{0.005, 0.1}, Length: []float64{10}, Size: []float64{10, 100}},
	}
}

func host(paths ...string) *model.Host {
	h := &model.Host{Name: "a.test"}
	for _, path := range paths {
		h.Routes = append(h.Routes, model.Route{
			Kind: model.Prefix, Path: path, Backend: model.BackendKey("shop", "one", "80"), Origin: model.Origin{Namespace: "shop", Ingress: "web"},
		})
	}
	return h
}

// TestCollect: reports are added up, each of them once, in the families and with the labels of
// ingress-nginx.
func TestCollect(t *testing.T) {
	table := traffic.New(settings())
	table.SetHost("a.test", host("/"))
	// Behind the requests: the sum of the request times in milliseconds, and three buckets of them.
	first := report(2, one{labelsOf("/"), 200, 0x2, map[int]float64{0: 3, 1: 1252, 2: 1, 3: 1, 4: 1}, nil})
	table.Add(map[string][]byte{"r1": first})
	table.Add(map[string][]byte{"r1": first, "r2": report(0, one{labelsOf("/"), 200, 0x2, map[int]float64{0: 1, 1: 4, 2: 1}, nil}), "r3": []byte("x")})
	const labels = `canary="",controller_class="k8s.io/ingress-nginx",controller_namespace="ingress",controller_pod="pod-1",host="a.test",ingress="web",` +
		`method="GET",namespace="shop",path="/",service="one",status="200"`
	want := strings.ReplaceAll(`# HELP headgate_uncounted_requests_total Number of requests that no series of the request metrics counts, by reason: ingress (no Ingress has their host, see --metrics-per-undefined-host), replaced (their route was changed or deleted while they went on), or lost (their worker ended before it could report them).
# TYPE headgate_uncounted_requests_total counter
headgate_uncounted_requests_total{reason="ingress"} 2
headgate_uncounted_requests_total{reason="lost"} 0
headgate_uncounted_requests_total{reason="replaced"} 0
# HELP headgate_unreadable_request_counts_total Number of reports of NGINX's workers with counts of requests that could not be read.
# TYPE headgate_unreadable_request_counts_total counter
headgate_unreadable_request_counts_total 1
# HELP nginx_ingress_controller_request_duration_seconds Time from the first byte of a request to the end of its response, in seconds.
# TYPE nginx_ingress_controller_request_duration_seconds histogram
nginx_ingress_controller_request_duration_seconds_bucket{LABELS,le="0.005"} 2
nginx_ingress_controller_request_duration_seconds_bucket{LABELS,le="0.1"} 3
nginx_ingress_controller_request_duration_seconds_bucket{LABELS,le="+Inf"} 4
nginx_ingress_controller_request_duration_seconds_sum{LABELS} 1.256
nginx_ingress_controller_request_duration_seconds_count{LABELS} 4
# HELP nginx_ingress_controller_requests Number of requests.
# TYPE nginx_ingress_controller_requests counter
nginx_ingress_controller_requests{LABELS} 4
`, "LABELS", labels)
	if err := testutil.GatherAndCompare(all(table), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestServed: a series goes with its route and name, and what comes late for it is not lost
// unseen.
func TestServed(t *testing.T) {
	table := traffic.New(settings())
	table.SetHost("a.test", host("/", "/old"))
	table.SetName("alias.test", "a.test")
	alias := labelsOf("/")
	alias["host"] = "alias.test"
	list := []one{{labelsOf("/"), 200, 2, map[int]float64{0: 1}, nil}, {labelsOf("/old"), 200, 2, map[int]float64{0: 1}, nil}, {alias, 200, 2, map[int]float64{0: 1}, nil}}
	table.Add(map[string][]byte{"r1": report(0, list...)})
	wantSeries(t, table, 3, 0)
	table.SetHost("a.test", host("/"))
	wantSeries(t, table, 2, 0)
	table.SetName("alias.test", "")
	wantSeries(t, table, 1, 0)
	table.Add(map[string][]byte{"r2": report(0, list...)})
	wantSeries(t, table, 1, 2)
	table.SetHost("a.test", nil)
	wantSeries(t, table, 0, 2)
}

// TestServedCanary: the series of a canary goes with the canary, that of its route stays.
func TestServedCanary(t *testing.T) {
	table := traffic.New(settings())
	with := func(services ...string) *model.Host {
		h := host("/")
		var canaries []model.Canary
		for _, service := range services {
			canaries = append(canaries, model.Canary{Backend: model.BackendKey("shop", service, "80")})
		}
		h.Routes[0].Policies = []model.Policy{{Feature: "other", Value: 1}, {Feature: "canary", Value: canaries}}
		return h
	}
	list := []one{{labelsOf("/"), 200, 2, map[int]float64{0: 1}, nil}}
	for _, service := range []string{"two", "three"} {
		labels := labelsOf("/")
		labels["canary"] = "shop-" + service + "-80"
		list = append(list, one{labels, 200, 2, map[int]float64{0: 1}, nil})
	}
	table.SetHost("a.test", with("two", "three"))
	table.Add(map[string][]byte{"r1": report(0, list...)})
	wantSeries(t, table, 3, 0)
	table.SetHost("a.test", with("three"))
	wantSeries(t, table, 2, 0)
	table.SetHost("a.test", host("/"))
	wantSeries(t, table, 1, 0)
	table.Add(map[string][]byte{"r2": report(0, list...)})
	wantSeries(t, table, 1, 2)
}

// wantSeries compares the number of series, and of requests without one.
func wantSeries(t *testing.T, table *traffic.Table, series int, replaced float64) {
	t.Helper()
	if n := len(gather(t, table, "nginx_ingress_controller_requests")); n != series {
		t.Errorf("%d series, want %d", n, series)
	}
	for _, m := range gather(t, table, "headgate_uncounted_requests_total") {
		if m.GetLabel()[0].GetValue() == "replaced" && m.GetCounter().GetValue() != replaced {
			t.Errorf("%v requests without a series, want %v", m.GetCounter().GetValue(), replaced)
		}
	}
}

// all has the series, and what a registry has of the table.
func all(table *traffic.Table) prometheus.Gatherer {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(table)
	return prometheus.Gatherers{registry, headgatetest.Series(table)}
}

func gather(t *testing.T, table *traffic.Table, family string) []*dto.Metric {
	t.Helper()
	families, err := all(table).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == family {
			return f.GetMetric()
		}
	}
	return nil
}

// TestLost: what a worker had counted and not reported is known once it has ended, however often
// its total comes.
func TestLost(t *testing.T) {
	table := traffic.New(settings())
	table.SetHost("a.test", host("/"))
	total := func(worker, requests float64) []byte {
		var data []byte
		for _, n := range []float64{worker, 4711, requests} {
			data = binary.NativeEndian.AppendUint64(data, math.Float64bits(n))
		}
		return data
	}
	list := one{labelsOf("/"), 200, 2, map[int]float64{0: 5}, nil}
	table.Add(map[string][]byte{"r1": report(2, list)})
	table.Add(map[string][]byte{"r1": report(2, list), "r2": report(0, list), "w0-1": total(1, 20)})
	table.Add(map[string][]byte{"w0-1": total(1, 20), "w1-2": total(2, 0), "w2-3": []byte("short")})
	table.Add(nil)
	for _, m := range gather(t, table, "headgate_uncounted_requests_total") {
		if reason, n := m.GetLabel()[0].GetValue(), m.GetCounter().GetValue(); reason == "lost" && n != 8 {
			t.Errorf("%v requests are lost, want 8", n)
		}
	}
	if m := gather(t, table, "headgate_unreadable_request_counts_total"); m[0].GetCounter().GetValue() != 1 {
		t.Errorf("%v reports could not be read, want 1", m[0].GetCounter().GetValue())
	}
}

// TestBudget: beyond it a namespace has one series for each class of statuses, and a finding
// until it has fewer again.
func TestBudget(t *testing.T) {
	s := settings()
	s.Budget = 2
	var findings []string
	s.Enter = func(parts []tracker.Part) {
		for _, p := range parts {
			findings = append(findings, "")
			for _, f := range p.Findings {
				findings[len(findings)-1] = f.Object
			}
		}
	}
	table := traffic.New(s)
	table.SetHost("a.test", host("/"))
	var list []one
	for status := uint32(200); status < 210; status++ {
		list = append(list, one{labelsOf("/"), status, 2, map[int]float64{0: 1}, nil})
	}
	table.Add(map[string][]byte{"r1": report(0, list...)})
	table.Add(map[string][]byte{"r2": report(0, list...)})
	counts := map[string]float64{}
	for _, m := range gather(t, table, "nginx_ingress_controller_requests") {
		counts[m.GetLabel()[5].GetValue()+" "+m.GetLabel()[10].GetValue()] += m.GetCounter().GetValue()
	}
	if len(counts) != 3 || counts["_others 2xx"] != 16 || counts["web 200"] != 2 {
		t.Errorf("%v", counts)
	}
	table.SetHost("a.test", nil)
	wantSeries(t, table, 0, 0)
	if got := strings.Join(findings, ","); got != "namespace/shop," {
		t.Errorf("findings of %q", got)
	}
}

// TestNative: native histograms have both kinds of buckets, and no more than allowed.
func TestNative(t *testing.T) {
	s := settings()
	schema := traffic.Schema(1.1)
	if schema != 2 && schema != 3 {
		t.Fatalf("schema %d", schema)
	}
	s.Schema, s.MaxBuckets = &schema, 4
	table := traffic.New(s)
	table.SetHost("a.test", host("/"))
	natives := [][2]int{{0, math.MinInt32}}
	for key := -8; key < 8; key++ {
		natives = append(natives, [2]int{0, key})
	}
	table.Add(map[string][]byte{"r1": report(0, one{labelsOf("/"), 200, 2, map[int]float64{0: 17, 1: 17, 2: 17}, natives})})
	metrics := gather(t, table, "nginx_ingress_controller_request_duration_seconds")
	if len(metrics) != 1 {
		t.Fatalf("%d series", len(metrics))
	}
	h := metrics[0].GetHistogram()
	buckets := 0
	for _, span := range h.GetPositiveSpan() {
		buckets += int(span.GetLength())
	}
	if h.GetZeroCount() != 1 || h.GetSchema() >= schema || buckets > 4 || buckets < 2 || len(h.GetBucket()) != 2 || h.GetSampleCount() != 17 {
		t.Errorf("%v", h)
	}
}

// TestSettings: classes, hosts and families can be left out.
func TestSettings(t *testing.T) {
	s := settings()
	s.PerHost, s.StatusClasses, s.Excluded = false, true, []string{"request_size", "nginx_ingress_controller_bytes_sent"}
	table := traffic.New(s)
	table.SetHost("a.test", host("/"))
	table.Add(map[string][]byte{"r1": report(0, one{labelsOf("/"), 204, 2, map[int]float64{0: 1}, nil})})
	metrics := gather(t, table, "nginx_ingress_controller_requests")
	if len(metrics) != 1 || len(metrics[0].GetLabel()) != 10 || metrics[0].GetLabel()[9].GetValue() != "2xx" {
		t.Errorf("%v", metrics)
	}
	described := make(chan *prometheus.Desc, 100)
	table.Describe(described)
	close(described)
	for d := range described {
		if strings.Contains(d.String(), `"nginx_ingress_controller_bytes_sent"`) || strings.Contains(d.String(), `"nginx_ingress_controller_request_size"`) {
			t.Errorf("%v is not left out", d)
		}
	}
}

// TestExcludedRequests: a host has its number of requests, also if all families are left out.
func TestExcludedRequests(t *testing.T) {
	s := settings()
	s.Excluded = traffic.Names()
	table := traffic.New(s)
	table.SetHost("a.test", host("/"))
	table.Add(map[string][]byte{"r1": report(0, one{labelsOf("/"), 204, 2, map[int]float64{0: 3}, nil})})
	if got := table.HostRequests()["a.test"]; got != [6]uint64{2: 3} {
		t.Errorf("%v", got)
	}
}

// TestBounds: bounds are compared as whole milliseconds and bytes.
func TestBounds(t *testing.T) {
	b := traffic.Buckets{Time: []float64{0.0005, 0.001, 0.57, 10}, Length: []float64{10.5}, Size: []float64{1e7}}
	length, size := b.Bytes()
	if got := b.Milliseconds(); got[0] != 0 || got[1] != 1 || got[2] != 570 || got[3] != 10000 || length[0] != 10 || size[0] != 1e7 {
		t.Errorf("%v %v %v", got, length, size)
	}
}

// FuzzAdd: no report breaks the table.
func FuzzAdd(f *testing.F) {
	f.Add(report(1, one{labelsOf("/"), 200, 2, map[int]float64{0: 1, 900: 1}, [][2]int{{0, 1}, {9, 2}}}))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := settings()
		schema := int32(3)
		s.Schema, s.MaxBuckets = &schema, 10
		table := traffic.New(s)
		table.SetHost("a.test", host("/"))
		table.Add(map[string][]byte{"r1": data})
		registry := prometheus.NewRegistry()
		registry.MustRegister(table)
		if _, err := registry.Gather(); err != nil {
			t.Error(err)
		}
	})
}
