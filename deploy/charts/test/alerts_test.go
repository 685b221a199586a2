package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// An alert is one of the chart's.
type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

// alerts are those of the PrometheusRule, with its spec as a file of rules.
func alerts(t *testing.T, values string) ([]alert, []byte) {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte("controller: {metrics: {enabled: true, prometheusRule: {enabled: true"+values+"}}}"), &parsed); err != nil {
		t.Fatal(err)
	}
	result, err := render(load(t), release{"headgate", "ingress"}, parsed)
	if err != nil {
		t.Fatal(err)
	}
	object := result.objects["PrometheusRule ingress/headgate-controller"]
	if object == nil {
		t.Fatal("no PrometheusRule")
	}
	text, err := yaml.Marshal(object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var spec struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &spec); err != nil || len(spec.Groups) != 1 {
		t.Fatal(err, string(text))
	}
	return spec.Groups[0].Rules, text
}

// TestAlerts: Prometheus accepts the alerts, and each fires at the series of testdata/alerts.yaml
// at which it should, and at no others.
func TestAlerts(t *testing.T) {
	list, rules := alerts(t, "")
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"rules.yaml": rules, "tests.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		command := exec.Command("promtool", arguments...)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}

	var file struct {
		Tests []struct {
			Rules []struct {
				Name string `json:"alertname"`
				Want []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(tests, &file); err != nil {
		t.Fatal(err)
	}
	tested := map[string]int{}
	for _, test := range file.Tests {
		for _, rule := range test.Rules {
			tested[fmt.Sprint(rule.Name, len(rule.Want) > 0)]++
		}
	}
	for _, a := range list {
		if tested[a.Alert+"true"] == 0 || tested[a.Alert+"false"] == 0 {
			t.Errorf("alert %s has no test in which it fires, or none in which it does not", a.Alert)
		}
	}
}

// TestRunbooks: each alert has a section in the runbooks, and each section is of an alert.
func TestRunbooks(t *testing.T) {
	const page = "docs/runbooks.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^## (Headgate\w+)$`).FindAllStringSubmatch(string(text), -1) {
		sections[match[1]] = true
	}
	list, _ := alerts(t, "")
	for _, a := range list {
		if !sections[a.Alert] {
			t.Errorf("%s has no section %s", page, a.Alert)
		}
		delete(sections, a.Alert)
		if want := "https://github.com/headgate/headgate/blob/main/" + page + "#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("alert %s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	for section := range sections {
		t.Errorf("%s: there is no alert %s", page, section)
	}
}

// TestDisabledAlerts: an alert can be left out, and the user's own are there.
func TestDisabledAlerts(t *testing.T) {
	all, _ := alerts(t, "")
	list, _ := alerts(t, ", disabledAlerts: [HeadgateNoLeader], rules: [{alert: Mine, expr: up == 0}]")
	if len(list) != len(all) || list[len(list)-1].Alert != "Mine" {
		t.Errorf("%d alerts, the last one %s; want %d", len(list), list[len(list)-1].Alert, len(all))
	}
	for _, a := range list {
		if a.Alert == "HeadgateNoLeader" {
			t.Error("it is not left out")
		}
	}
}

// metric is a name of Headgate's metrics in an expression.
var metric = regexp.MustCompile(`\b(?:headgate|nginx_ingress_controller)_[a-z_]+`)

// wantDocumented checks that docs/metrics.md has the metrics of an expression.
func wantDocumented(t *testing.T, where, expression string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := metric.FindAllString(expression, -1)
	if len(names) == 0 && !strings.Contains(expression, "process_") && !strings.Contains(expression, "go_") {
		t.Errorf("%s has no metric of Headgate", where)
	}
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+histogram.ReplaceAllString(name, "")+"`") {
			t.Errorf("%s: docs/metrics.md has no metric %s", where, name)
		}
	}
}

// TestAlertsUseMetrics: Headgate has the metrics of the alerts.
func TestAlertsUseMetrics(t *testing.T) {
	list, _ := alerts(t, "")
	for _, a := range list {
		wantDocumented(t, "alert "+a.Alert, a.Expr)
	}
}
