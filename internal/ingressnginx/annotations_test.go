package ingressnginx

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite annotations.txt")

// TestTable compares the embedded list with that of the compatibility tests.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../../test/compat/annotations.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 5 || fields[0] == "name" {
			continue
		}
		name, value, status := fields[0], fields[2], fields[3]
		if value == "-" {
			value = ""
		}
		if name == "load-balance" {
			value = "round_robin" // of the key with the same name
		}
		want.WriteString(name + "\t" + status + "\t" + value + "\t" + fields[4] + "\n")
	}
	if *update {
		if err := os.WriteFile("annotations.txt", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want.String() {
		t.Error("annotations.txt differs from test/compat/annotations.tsv (go test -update writes it)")
	}
	if len(Names()) < 120 {
		t.Errorf("%d names, want those of ingress-nginx", len(Names()))
	}
}

func TestAsksForNothing(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"backend-protocol", "HTTP", true},
		{"backend-protocol", "http", true},
		{"backend-protocol", "HTTPS", false},
		{"enable-modsecurity", "False", true},
		{"enable-modsecurity", "0", true},
		{"enable-modsecurity", "true", false},
		{"limit-connections", "0", true},
		{"limit-connections", "false", false},
		{"load-balance", "round_robin", true},
		{"load-balance", "ewma", false},
		{"server-snippet", " ", true},
		{"server-snippet", "x", false},
		{"enable-access-log", "true", true},
	} {
		if a, ok := Lookup(c.name); !ok || a.AsksForNothing(c.value) != c.want {
			t.Errorf("%s: %q: want %v", c.name, c.value, c.want)
		}
	}
}
