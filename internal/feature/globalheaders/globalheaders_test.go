package globalheaders_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/globalheaders"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/syntax/header"
)

// read is what both keys make of a ConfigMap.
func read(t testing.TB, data map[string]string) (policy string, p model.Process, problems []feature.Problem) {
	t.Helper()
	f := globalheaders.Feature()
	schema := feature.NewSchema("p", []feature.Feature{f})
	config, bad := schema.Config(map[string]string{"proxy-set-headers": "a/b", "add-headers": "a/b"})
	attached, missing := config.Attach(feature.Objects{ConfigMap: func(feature.ObjectName) (map[string]string, bool) { return data, true }})
	if len(bad)+len(missing) > 0 {
		t.Fatal(bad, missing)
	}
	out := feature.ProcessOut{Report: feature.NewReport(attached.Values(), feature.KeyDenies), Process: &p}
	f.Process(attached.Values(), &out)
	return fmt.Sprintf("%+v", out.Policy), p, out.Problems
}

func TestBounds(t *testing.T) {
	t.Parallel()
	data := map[string]string{}
	for i := range 64 {
		data[fmt.Sprintf("X-%d", i)] = "v"
	}
	if policy, _, problems := read(t, data); len(problems) > 0 {
		t.Errorf("64 headers: %s, %v", policy, problems)
	}
	data["More"] = "v"
	if policy, _, problems := read(t, data); len(problems) != 2 || !problems[0].Denies || problems[1].Denies || !strings.Contains(policy, "Denied:true") {
		t.Errorf("65 headers: %s, %v", policy, problems)
	}
	long := map[string]string{}
	for i := range 5 {
		long[fmt.Sprint(i)] = strings.Repeat("v", 4000)
	}
	if policy, _, problems := read(t, long); len(problems) != 2 || !strings.Contains(policy, "Denied:true") {
		t.Errorf("20,000 bytes: %s, %v", policy, problems)
	}
}

// FuzzHeader checks which headers can be set.
func FuzzHeader(f *testing.F) {
	f.Add("X-Custom", "value $req_id")
	f.Add("X-Custom", "a\r\nX-Evil: 1")
	f.Add("Content-LENGTH", "5")
	f.Add("X_Custom", "\x00")
	f.Add("X-Real-IP", "$1")
	f.Fuzz(func(t *testing.T, name, value string) {
		policy, p, problems := read(t, map[string]string{name: value})
		if len(problems) > 0 {
			return
		}
		if strings.ContainsAny(name, " :\t\r\n\x00") || strings.ContainsAny(strings.TrimSpace(value), "\r\n\x00\x7f") {
			t.Errorf("%q: %q is taken: %s", name, value, policy)
		}
		for _, framing := range header.RequestFraming() {
			if strings.EqualFold(name, framing) {
				t.Errorf("%q is taken", name)
			}
		}
		for _, replaced := range p.ReplacedHeaders.Names() {
			if !header.Has(names.RequestHeaders(), replaced) {
				t.Errorf("%q is replaced in nginx.conf", replaced)
			}
		}
	})
}

// The variables that values can have are those that Lua has functions of.
func TestVariables(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("global_headers.lua")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    ([a-z0-9_]+) = function\(\)`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 10 {
		t.Fatalf("variables of Lua: %v", found)
	}
	for _, f := range found {
		if _, _, problems := read(t, map[string]string{"X": "$" + f[1]}); len(problems) > 1 {
			t.Errorf("$%s: %v", f[1], problems)
		}
	}
	_, _, problems := read(t, map[string]string{"X": "$no"})
	if len(problems) != 2 {
		t.Fatal(problems)
	}
	for _, p := range problems {
		list := p.Message[strings.Index(p.Message, "must be one of $")+len("must be one of $"):]
		for _, name := range strings.Split(list, ", $") {
			if name == "args" { // the first of those of all templates
				break
			}
			if !strings.Contains(string(text), "    "+name+" = function()") {
				t.Errorf("Lua has no function of $%s", name)
			}
		}
	}
}
