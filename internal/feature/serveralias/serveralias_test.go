package serveralias_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/serveralias"
	"github.com/headgate/headgate/internal/model"
)

// read gives what an annotation claims, and the problem with it.
func read(f feature.Feature, value string) (aliases []string, problem string) {
	schema := feature.NewSchema("p", []feature.Feature{f})
	config, _ := schema.Config(nil)
	parsed := schema.Parse(model.Origin{Namespace: "a", Ingress: "b"}, map[string]string{"p/server-alias": value}, config)
	var out feature.NamesOut
	f.Names(parsed.Values(), &out)
	for _, p := range parsed.Problems() {
		problem += p.Message
	}
	return out.Aliases, problem
}

func numbered(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return strings.Join(list, ",")
}

func TestCaps(t *testing.T) {
	t.Parallel()
	f := serveralias.Feature()
	for _, c := range []struct {
		value   string
		aliases int
		problem string
	}{
		{numbered(1000, "a%d.test"), 1000, ""},
		{numbered(1001, "a%d.test"), 0, "at most 1000 aliases"},
		{numbered(500, ".a%d.test"), 1000, ""},
		{numbered(501, ".a%d.test"), 0, "at most 1000 aliases"},
		{numbered(16, "~^a%d"), 16, ""},
		{numbered(17, "~^a%d"), 0, "at most 16 regular expressions"},
		{numbered(17, "~^a%d") + ",~(", 0, "at most 16 regular expressions"},
	} {
		aliases, problem := read(f, c.value)
		if len(aliases) != c.aliases || (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
			t.Errorf("%.40s…: %d aliases, %q", c.value, len(aliases), problem)
		}
	}
}

// A message does not carry all that a tenant wrote.
func TestLongEntries(t *testing.T) {
	t.Parallel()
	f := serveralias.Feature()
	for _, value := range []string{"~(" + strings.Repeat("a", 4000), strings.Repeat("a", 4000)} {
		if _, problem := read(f, value); problem == "" || len(problem) > 500 {
			t.Errorf("the problem with %.10s… has %d bytes: %.600s", value, len(problem), problem)
		}
	}
}
