package chart_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts: the metrics in the chart's alerts are some that Headgate has.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "files/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var alerts []struct{ Alert, Expr string }
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	code := sources(t, filepath.Join(root, "internal")) + sources(t, filepath.Join(root, "cmd/headgate"))
	metric := regexp.MustCompile(`\b(headgate|nginx_ingress_controller)_[a-z_]+`)
	for _, alert := range alerts {
		names := metric.FindAllString(alert.Expr, -1)
		if len(names) == 0 {
			t.Errorf("alert %s has no metric", alert.Alert)
		}
		for _, name := range names {
			if !strings.Contains(code, `"`+name+`"`) {
				t.Errorf("alert %s: Headgate has no metric %s", alert.Alert, name)
			}
		}
	}
}

// sources are the Go files below a folder, without tests.
func sources(t *testing.T, folder string) string {
	t.Helper()
	var b bytes.Buffer
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, path))
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
