package dataplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A prometheus is Debian's Prometheus on the loopback address.
type prometheus struct {
	t   *testing.T
	url string
}

// A series is one of the results of a query.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// number is its value, as Prometheus writes it.
func (s series) number() string { return fmt.Sprint(s.Value[1]) }

// scrapes is how often a program is scraped.
const scrapes = time.Second

// startPrometheus lets one scrape programs once a second, with the labels that a ServiceMonitor
// adds: the samples' own are renamed to exported_namespace and so on.
func startPrometheus(t *testing.T, programs ...*program) *prometheus {
	t.Helper()
	dir := t.TempDir()
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: %v, scrape_timeout: %[1]v}\nscrape_configs:\n- job_name: headgate-controller-metrics\n  honor_labels: false\n  static_configs:\n", scrapes)
	for i, p := range programs {
		fmt.Fprintf(&config, "  - targets: [%q]\n    labels: {namespace: ingress-%d, pod: headgate-%d, service: headgate-controller-metrics, endpoint: metrics, container: controller}\n",
			headgatetest.Address(p.healthz), i, i)
	}
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	address := headgatetest.Address(porttest.Free(t))
	log := &headgatetest.Log{}
	command := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the log of Prometheus:\n%s", log.String())
		}
	})
	s := &prometheus{t: t, url: "http://" + address}
	headgatetest.Eventually(t, "Prometheus is ready", func() bool {
		response, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return s
}

// get asks for a path of its API, and returns Prometheus' own words if it refuses.
func (s *prometheus) get(path string, parameters url.Values, into any) error {
	response, err := http.Get(s.url + path + "?" + parameters.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s", answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// query evaluates an expression now.
func (s *prometheus) query(expression string) ([]series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := s.get("/api/v1/query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("query %s: a %s", expression, data.ResultType)
	}
	var list []series
	return list, json.Unmarshal(data.Result, &list)
}

// labelValues are the values of a label of some series.
func (s *prometheus) labelValues(label, match string) ([]string, error) {
	var list []string
	if err := s.get("/api/v1/label/"+label+"/values", url.Values{"match[]": {match}}, &list); err != nil {
		return nil, fmt.Errorf("values of %s of %s: %w", label, match, err)
	}
	return list, nil
}

// lacks says why a query or label_values(SERIES, LABEL) gives no value, or nothing. Prometheus
// must be able to read it.
func (s *prometheus) lacks(query string) string {
	s.t.Helper()
	if inside, ok := strings.CutPrefix(query, "label_values("); ok {
		comma := strings.LastIndex(inside, ",")
		list, err := s.labelValues(strings.Trim(inside[comma+1:], " )"), inside[:comma])
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) == 0 {
			return "no values: " + query
		}
		return ""
	}
	list, err := s.query(query)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(list) == 0 {
		return "no series: " + query
	}
	// A group without requests of late has no quantile. Others must have.
	if !slices.ContainsFunc(list, func(one series) bool { return one.number() != "NaN" }) {
		return "NaN: " + query
	}
	return ""
}
