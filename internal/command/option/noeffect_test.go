package option

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parseFlags parses flags of the controller.
func parseFlags(args ...string) (*pflag.FlagSet, error) {
	var o Options
	f := pflag.NewFlagSet("headgate", pflag.ContinueOnError)
	o.Add(f)
	return f, f.Parse(args)
}

// warned are the flags that a log warns of.
func warned(t *testing.T, flags string, warn func(*pflag.FlagSet, *slog.Logger)) string {
	t.Helper()
	f, err := parseFlags(strings.Fields(flags)...)
	if err != nil {
		t.Fatalf("%q: %v", flags, err)
	}
	var log bytes.Buffer
	warn(f, slog.New(slog.NewTextHandler(&log, nil)))
	var names []string
	for line := range strings.Lines(log.String()) {
		_, message, _ := strings.Cut(line, `level=WARN msg="`)
		name, _, _ := strings.Cut(message, " ")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// wantWarnings checks of which flags a log warns, separated by spaces.
func wantWarnings(t *testing.T, warn func(*pflag.FlagSet, *slog.Logger), byFlags map[string]string) {
	t.Helper()
	for flags, want := range byFlags {
		if got := warned(t, flags, warn); got != want {
			t.Errorf("%q warns of %q, want %q", flags, got, want)
		}
	}
}

// TestFlagsWithoutEffect: setting a flag without effect logs a warning, its default does not.
func TestFlagsWithoutEffect(t *testing.T) {
	wantWarnings(t, WarnWithoutEffect, map[string]string{
		"":                 "",
		"--http-port=8080": "",
		"--enable-annotation-validation=true --dynamic-configuration-retries 15": "",
		"--enable-annotation-validation=false --sync-period 1m":                  "--enable-annotation-validation --sync-period",
	})
}

// TestReasons: each flag without effect says why, or what is missing.
func TestReasons(t *testing.T) {
	f, err := parseFlags()
	if err != nil {
		t.Fatal(err)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if _, reason, ok := strings.Cut(flag.Usage, ": "); HasNoEffect(flag) && (!ok || reason == "") {
			t.Errorf("--%s gives no reason: %s", flag.Name, flag.Usage)
		}
	})
}
