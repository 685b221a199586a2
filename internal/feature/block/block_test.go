package block_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/block"
	"github.com/headgate/headgate/internal/model"
)

// FuzzTexts reads lists of values. What is taken is within its bounds, and an entry that is
// not is reported.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"", "a", "BadBot,~*evil", "~^$", "~(a", "~*", "~", ",", "a,", "~a(?C1)", "~(?R)", "~\\Q", "a\x00", "\xff", strings.Repeat("a,", 10001) + "a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policy, problems := policyOf(text)
		globals, err := json.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		entries := strings.Count(text, ",") + 1
		if entries == 1 && strings.TrimSpace(text) == "" || len(problems) > 0 {
			if string(globals) != "null" {
				t.Errorf("%q with %v is used: %s", text, problems, globals)
			}
			return
		}
		var p struct {
			UserAgents struct {
				Whole    map[string]bool
				Patterns []struct{ Pattern string }
			} `json:"user_agents"`
		}
		if err := json.Unmarshal(globals, &p); err != nil {
			t.Fatal(err)
		}
		if n := len(p.UserAgents.Whole) + len(p.UserAgents.Patterns); n == 0 || n > entries {
			t.Errorf("%q has %d entries, and %d are used", text, entries, n)
		}
	})
}

// policyOf is what Lua gets for a value of block-user-agents, nil for nothing.
func policyOf(text string) (policy any, problems []feature.Problem) {
	f := block.Feature()
	config, problems := feature.NewSchema("", []feature.Feature{f}).Config(map[string]string{"block-user-agents": text})
	out := feature.ProcessOut{Process: &model.Process{}}
	f.Process(config.Values(), &out)
	return out.Policy, problems
}
