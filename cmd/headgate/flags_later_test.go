package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestFlagsOfIngressNGINX: all flags of ingress-nginx's Deployments exist.
func TestFlagsOfIngressNGINX(t *testing.T) {
	text, err := os.ReadFile("../../test/compat/COVERAGE.tsv")
	if err != nil {
		t.Fatal(err)
	}
	command := newCommand()
	command.InitDefaultHelpFlag()
	command.Version = "any"
	command.InitDefaultVersionFlag()
	known := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, "\t")
		if fields[0] != "flag" {
			continue
		}
		if command.Flags().Lookup(strings.TrimPrefix(fields[1], "--")) == nil {
			t.Errorf("%s is unknown", fields[1])
		}
		known++
	}
	if known < 80 {
		t.Errorf("%d flags of ingress-nginx, want all", known)
	}
}

// TestLaterFlags: setting a flag without effect logs a warning, and values of the
// wrong type are rejected.
func TestLaterFlags(t *testing.T) {
	for _, c := range []struct{ flags, warned string }{
		{"", ""},
		{"--http-port=8080", ""},
		{"--enable-metrics=true --enable-metrics", "--enable-metrics"},
		{
			"--maxmind-mirror=a=b --maxmind-license-key a --sync-period 1m",
			"--maxmind-license-key --maxmind-mirror --sync-period",
		},
		{"--time-buckets=0.1,2 --exclude-socket-metrics a,b --max-buckets=1", "--exclude-socket-metrics --max-buckets --time-buckets"},
	} {
		f := newCommand().Flags()
		if err := f.Parse(strings.Fields(c.flags)); err != nil {
			t.Errorf("%q: %v", c.flags, err)
			continue
		}
		var log bytes.Buffer
		warnLaterFlags(f, slog.New(slog.NewTextHandler(&log, nil)))
		var warned []string
		for line := range strings.Lines(log.String()) {
			_, message, _ := strings.Cut(line, `level=WARN msg="`)
			name, _ := strings.CutSuffix(strings.TrimSpace(message), ` has no effect in this version"`)
			warned = append(warned, name)
		}
		if got := strings.Join(warned, " "); got != c.warned {
			t.Errorf("%q warns of %q, want %q", c.flags, got, c.warned)
		}
	}
	for _, flags := range []string{"--status-port=x", "--election-ttl=5", "--profiler-address=here", "--update-status=maybe", "--sort-backends"} {
		if err := newCommand().Flags().Parse([]string{flags}); err == nil {
			t.Errorf("%s is accepted", flags)
		}
	}
}
