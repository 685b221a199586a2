package chart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A dashboard has the fields of Grafana's dashboards that Headgate's use.
type dashboard struct {
	Title         string
	Description   string
	Tags          []string
	SchemaVersion int
	Editable      bool
	Refresh       string
	Time          struct{ From, To string }
	Links         []struct {
		Title, Type                       string
		Tags                              []string
		AsDropdown, IncludeVars, KeepTime bool
	}
	Templating struct {
		List []struct {
			Name, Label, Type, Query, AllValue string
			Datasource                         datasource
			Refresh, Sort                      int
			Multi, IncludeAll                  bool
			Current                            struct{ Text, Value string }
		}
	}
	Panels []panel
}

type datasource struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  place
	FieldConfig              struct {
		Defaults struct {
			Unit   string
			Min    *float64
			Custom map[string]any
		}
		Overrides []any
	}
	Options         map[string]any
	Transformations []struct {
		ID      string
		Options map[string]any
	}
	Targets []struct {
		RefID, Expr, LegendFormat, Format string
		Datasource                        datasource
		Instant                           bool
	}
}

type place struct{ X, Y, W, H int }

func (p place) overlaps(q place) bool {
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

// dashboards are Headgate's, by path below the chart.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "files/dashboards/*.json"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	found := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		var d dashboard
		if err := decoder.Decode(&d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = d
	}
	return found
}

// TestDashboards: Grafana can show them with any data source, and they explain themselves.
func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for file, d := range dashboards(t) {
		if d.Title == "" || titles[d.Title] || d.SchemaVersion < 36 || !slices.Contains(d.Tags, "headgate") {
			t.Errorf("%s: title, schemaVersion or tags", file)
		}
		titles[d.Title] = true
		variables := []string{"__rate_interval", "__range"}
		for i, v := range d.Templating.List {
			variables = append(variables, v.Name)
			if (i == 0) != (v.Type == "datasource" && v.Name == "datasource" && v.Query == "prometheus") || v.Label == "" {
				t.Errorf("%s: variable %s: the data source, and no other, comes first", file, v.Name)
			}
			if v.Type == "query" {
				d.checkQuery(t, file+": $"+v.Name, v.Query, v.Datasource, variables)
			}
		}
		for i, p := range d.Panels {
			d.checkPanel(t, file+": "+p.Title, i, variables)
		}
	}
}

// units are identifiers of Grafana's units.
var units = []string{"short", "s", "reqps", "ops", "Bps", "bytes", "percentunit"}

func (d dashboard) checkPanel(t *testing.T, where string, i int, variables []string) {
	t.Helper()
	p := d.Panels[i]
	if p.ID != i+1 || p.Title == "" || p.Description == "" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) ||
		!slices.Contains([]string{"stat", "timeseries", "table", "heatmap"}, p.Type) || len(p.Targets) == 0 {
		t.Errorf("%s: id, title, description, unit, type or targets", where)
	}
	if p.GridPos.W <= 0 || p.GridPos.H <= 0 || p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 {
		t.Errorf("%s: its place is %+v", where, p.GridPos)
	}
	for _, other := range d.Panels[:i] {
		if p.GridPos.overlaps(other.GridPos) {
			t.Errorf("%s: it overlaps %s", where, other.Title)
		}
		if p.Title == other.Title {
			t.Errorf("%s: two panels of that name", where)
		}
	}
	for j, target := range p.Targets {
		if want := string(rune('A' + j)); target.RefID != want {
			t.Errorf("%s: refId is %q, want %s", where, target.RefID, want)
		}
		d.checkQuery(t, where, target.Expr, target.Datasource, variables)
	}
}

var variable = regexp.MustCompile(`\$(\w+)`)

func (d dashboard) checkQuery(t *testing.T, where, query string, from datasource, variables []string) {
	t.Helper()
	if from != (datasource{"prometheus", "${datasource}"}) {
		t.Errorf("%s: its data source is %+v", where, from)
	}
	for _, match := range variable.FindAllStringSubmatch(query, -1) {
		if !slices.Contains(variables, match[1]) {
			t.Errorf("%s: there is no variable %s", where, match[0])
		}
	}
	wantDocumented(t, where, query)
}

// TestDashboardConfigMaps: each dashboard has a ConfigMap that Grafana's sidecar finds.
func TestDashboardConfigMaps(t *testing.T) {
	values := map[string]any{"controller": map[string]any{"metrics": map[string]any{"enabled": true, "dashboards": map[string]any{"enabled": true, "namespace": "grafana"}}}}
	result, err := render(load(t), release{"headgate", "ingress"}, values)
	if err != nil {
		t.Fatal(err)
	}
	for file := range dashboards(t) {
		object := result.objects["ConfigMap grafana/headgate-controller-dashboard-"+strings.TrimPrefix(strings.TrimSuffix(file, ".json"), "headgate-")]
		if object == nil {
			t.Errorf("%s has no ConfigMap", file)
			continue
		}
		data, _ := object.Object["data"].(map[string]any)
		text, err := os.ReadFile(filepath.Join(folder, "files/dashboards", file))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := data[file].(string)
		if strings.TrimSpace(got) != strings.TrimSpace(string(text)) || object.GetLabels()["grafana_dashboard"] != "1" {
			t.Errorf("%s: its ConfigMap differs, or has no label", file)
		}
	}
}
