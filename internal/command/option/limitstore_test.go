package option

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestLimitStoreFlags: what can't be right is rejected before anything starts.
func TestLimitStoreFlags(t *testing.T) {
	for _, c := range []struct{ flags, problem string }{
		{"", ""},
		{"--limit-store=redis://store:6379", ""},
		{"--limit-store=rediss://user@store:6379/1 --limit-store-password-file=option.go", ""},
		{"--limit-store=store:6379", "--limit-store: must be redis://HOST:PORT"},
		{"--limit-store=redis://:secret@store", "--limit-store: must have no password"},
		{"--limit-store=redis://store --limit-store-password-file=none", "--limit-store: read the password: open none"},
		{"--limit-store=rediss://store --limit-store-certificate-authority=option.go", "option.go has no certificate in PEM"},
		{"--limit-store-password-file=option.go", "require --limit-store"},
		{"--limit-store-certificate-authority=option.go", "require --limit-store"},
	} {
		var o LimitStore
		f := pflag.NewFlagSet("headgate", pflag.ContinueOnError)
		o.addLimitStoreFlags(f)
		if err := f.Parse(strings.Fields(c.flags)); err != nil {
			t.Errorf("%s: %v", c.flags, err)
			continue
		}
		err := o.checkLimitStore()
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: the error is %v, want %q", c.flags, err, c.problem)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password: %v", c.flags, err)
		}
	}
}
