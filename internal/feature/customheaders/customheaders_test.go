package customheaders_test

import (
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/customheaders"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// read reports whether a ConfigMap gives a policy, and fails unless it gives one
// or denies the route.
func read(t *testing.T, allowed string, data map[string]string) bool {
	t.Helper()
	route, problems := featuretest.Read(customheaders.Feature(), map[string]string{"custom-headers": "default/headers"},
		map[string]string{"global-allowed-response-headers": allowed},
		feature.Objects{ConfigMap: func(feature.ObjectName) (map[string]string, bool) { return data, true }})
	if (len(route.Policies) == 1) == route.Denied || route.Denied != (len(problems) == 1) {
		t.Fatalf("%v with %q allowed: %d policies, denied %v, problems %v", data, allowed, len(route.Policies), route.Denied, problems)
	}
	return len(route.Policies) == 1
}

func TestBounds(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	var names []string
	for i := range 64 {
		name := "X-" + strings.Repeat("a", i)
		many[name] = "v"
		names = append(names, name)
	}
	allowed := strings.Join(names, ",") + ",More"
	if !read(t, allowed, many) {
		t.Error("64 headers are refused")
	}
	many["More"] = "v"
	if read(t, allowed, many) {
		t.Error("65 headers are taken")
	}
	if !read(t, "A", map[string]string{"A": strings.Repeat("v", 16383)}) {
		t.Error("16384 bytes are refused")
	}
	if read(t, "A", map[string]string{"A": strings.Repeat("v", 16384)}) {
		t.Error("16385 bytes are taken")
	}
}

// FuzzHeader checks what a header can be, for any list of allowed headers.
func FuzzHeader(f *testing.F) {
	f.Add("X-Custom", "value")
	f.Add("X-Custom", "a\r\nX-Evil: 1")
	f.Add("Content-LENGTH", "5")
	f.Add("X_Custom", "\x00")
	f.Fuzz(func(t *testing.T, name, value string) {
		if !read(t, name, map[string]string{name: value}) {
			return
		}
		if strings.ContainsAny(name, " :\t\r\n\x00") || strings.ContainsAny(value, "\r\n\x00\x7f") || value == "" {
			t.Errorf("%q: %q is taken", name, value)
		}
		if strings.EqualFold(name, "content-length") || strings.EqualFold(name, "transfer-encoding") || strings.EqualFold(name, "connection") {
			t.Errorf("%q is taken", name)
		}
	})
}

// Findings about a ConfigMap of another namespace are the same for all problems: else
// they would reveal whether it exists, and what is in it.
func TestForeignConfigMapsAreNotRevealed(t *testing.T) {
	text, err := os.ReadFile("testdata/headers.txtar")
	if err != nil {
		t.Fatal(err)
	}
	problems := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "problem") && strings.Contains(line, "other/") {
			problems[strings.NewReplacer("other/none", "X", "other/shared", "X").Replace(line)] = true
		}
	}
	if len(problems) != 1 {
		t.Errorf("problems: %v", problems)
	}
}
