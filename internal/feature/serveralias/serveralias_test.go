package serveralias_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/serveralias"
	"github.com/headgate/headgate/internal/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, serveralias.Feature()) }

// read gives what an annotation claims, and the problem with it.
func read(f feature.Feature, value string) (aliases []string, problem string) {
	config, _ := feature.NewConfig([]feature.Feature{f}, nil)
	r := feature.NewReader("p", map[string]string{"p/server-alias": value}, config)
	aliases = f.Aliases(r)
	for _, p := range r.Problems() {
		problem += p.Message
	}
	return aliases, problem
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
		{numbered(1001, "a%d.test"), 0, "more than 1000 aliases"},
		{numbered(500, ".a%d.test"), 1000, ""},
		{numbered(501, ".a%d.test"), 0, "more than 1000 aliases"},
		{numbered(16, "~^a%d"), 16, ""},
		{numbered(17, "~^a%d"), 0, "more than 16 regular expressions"},
		{numbered(17, "~^a%d") + ",~(", 0, "more than 16 regular expressions"},
	} {
		// The second time it is remembered.
		for range 2 {
			aliases, problem := read(f, c.value)
			if len(aliases) != c.aliases || (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("%.40s…: %d aliases, %q", c.value, len(aliases), problem)
			}
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

// What is remembered is bounded, and each value keeps its own result.
func TestManyValues(t *testing.T) {
	t.Parallel()
	f := serveralias.Feature()
	for range 2 {
		for i := range 200 {
			want := fmt.Sprintf("a%d.test", i)
			if aliases, _ := read(f, want); len(aliases) != 1 || aliases[0] != want {
				t.Fatalf("%s gives %v", want, aliases)
			}
		}
	}
}
