package dataplane_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// ownDashboards are Headgate's, and ownAlerts are its alerts.
const (
	ownDashboards = "../../deploy/dashboards/*.json"
	ownAlerts     = "../../deploy/charts/headgate/files/alerts.yaml"
)

// A panelQuery is a query of a panel or variable.
type panelQuery struct{ name, query string }

// faults are queries of Headgate's dashboards that may have no series, since they show what does not
// happen in this test.
var faults = []string{
	"Headgate: traffic: Endpoints A", "Headgate: traffic: Endpoints B",
	"Headgate: control plane: Reloads B", "Headgate: control plane: Reloads by reason A", "Headgate: control plane: Admission webhook A", "Headgate: control plane: Time of the webhook A", "Headgate: control plane: Time of the webhook B",
	"Headgate: control plane: Events and log lines A", "Headgate: control plane: Store of limits A", "Headgate: control plane: TCP and UDP services A",
	"Headgate: tenants: Requests that were refused A", "Headgate: tenants: Requests beyond a limit A", "Headgate: tenants: Requests beyond a limit B",
	"Headgate: tenants: Ejections A", "Headgate: tenants: Worker time A", "Headgate: tenants: Health checks A",
}

// everything and chosen are the values of the dashboards' variables: everything, or one thing each.
var (
	everything = map[string]string{"__rate_interval": "1m", "__range": "1m", "__interval": "1m"}
	chosen     = map[string]string{
		"__rate_interval": "1m", "__range": "1m", "__interval": "1m", "namespace": "ingress-1", "controller": "headgate-1", "controller_class": "k8s.io/ingress-nginx",
		"exported_namespace": "default", "ingress": "canary",
		"job": "headgate-controller-metrics", "pod": "headgate-1",
	}
	variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)
)

// with replaces the variables of a query.
func (q panelQuery) with(values map[string]string) string {
	return variable.ReplaceAllStringFunc(q.query, func(name string) string {
		if value, ok := values[strings.Trim(name, "${}")]; ok {
			return value
		}
		return ".*"
	})
}

// checkQueries waits until each query gives a value, for everything and for one thing, while there is traffic.
func (s *prometheus) checkQueries(traffic func()) {
	s.t.Helper()
	queries := slices.Concat(ingressNginxQueries(s.t), ownQueries(s.t))
	var lacking []string
	defer func() {
		if len(lacking) > 0 {
			s.t.Errorf("queries without a value:\n%s", strings.Join(lacking, "\n"))
		}
		s.t.Logf("%d queries", len(queries))
	}()
	headgatetest.Eventually(s.t, "all queries give values", func() bool {
		traffic()
		lacking = nil
		for _, q := range queries {
			for _, values := range []map[string]string{everything, chosen} {
				if why := s.lacks(q.with(values)); why != "" && !slices.Contains(faults, q.name) {
					lacking = append(lacking, q.name+": "+why)
				}
			}
		}
		if len(lacking) > 0 {
			time.Sleep(scrapes / 4)
		}
		return len(lacking) == 0
	})
}

// ingressNginxQueries are those of a file of rows DASHBOARD PANEL QUERY.
func ingressNginxQueries(t *testing.T) []panelQuery {
	t.Helper()
	text, err := os.ReadFile("testdata/prometheus/ingress-nginx.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var list []panelQuery
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 {
			t.Fatalf("a row of %d cells: %s", len(cells), line)
		}
		list = append(list, panelQuery{cells[0] + ": " + cells[1], cells[2]})
	}
	return list
}

// ownQueries are those of Headgate's dashboards.
func ownQueries(t *testing.T) []panelQuery {
	t.Helper()
	files, err := filepath.Glob(ownDashboards)
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	var list []panelQuery
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Title  string
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
			Templating struct {
				List []struct {
					Name, Type string
					Query      any
				}
			}
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				list = append(list, panelQuery{dashboard.Title + ": " + panel.Title + " " + target.RefID, target.Expr})
			}
		}
		for _, v := range dashboard.Templating.List {
			if v.Type == "query" {
				list = append(list, panelQuery{dashboard.Title + ": $" + v.Name, fmt.Sprint(v.Query)})
			}
		}
	}
	return list
}

// checkAlerts: Prometheus can evaluate all alerts with several replicas, and none is about to fire without a reason.
func (s *prometheus) checkAlerts() {
	s.t.Helper()
	text, err := os.ReadFile(ownAlerts)
	if err != nil {
		s.t.Fatal(err)
	}
	var alerts []struct{ Alert, Expr string }
	if err := yaml.Unmarshal(text, &alerts); err != nil || len(alerts) == 0 {
		s.t.Fatal(err)
	}
	var met []string
	for _, a := range alerts {
		list, err := s.query(a.Expr)
		if err != nil {
			s.t.Errorf("alert %s: %v", a.Alert, err)
		}
		// How many requests failed in a second depends on this machine.
		if len(list) > 0 && a.Alert != "HeadgateIngressErrors" {
			met = append(met, a.Alert)
		}
	}
	// The certificate is valid for a day, and there are no leaders in folder mode.
	if diff := cmp.Diff([]string{"HeadgateCertificateExpires", "HeadgateCertificateExpiresToday", "HeadgateNoLeader"}, met); diff != "" {
		s.t.Errorf("the alerts whose condition is met (-want +got):\n%s", diff)
	}
}
