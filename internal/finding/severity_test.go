package finding_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/finding"
)

// TestWorstFirst: what denies requests is before what is not served, and that before the rest; the
// list itself stays as it is.
func TestWorstFirst(t *testing.T) {
	list := []finding.Finding{
		{Object: "a", Code: finding.Expires}, {Object: "b", Code: finding.InvalidValue}, {Object: "c", Code: finding.Waits, Denies: true},
		{Object: "d", Code: "New"}, {Object: "e", Code: finding.OldPrefix}, {Object: "f", Code: finding.InvalidValue, Rejected: true, Denies: true},
	}
	var got []string
	for _, f := range finding.WorstFirst(list) {
		got = append(got, f.Object+" "+string(f.Severity()))
	}
	if want := "c denial, f denial, b error, d error, a notice, e notice"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if list[0].Object != "a" {
		t.Error("the list was changed")
	}
}
