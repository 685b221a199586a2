package upstreamvhost_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/upstreamvhost"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// FuzzUpstreamVhost checks that a value becomes a policy, or is reported and
// denied, and what a Host can contain.
func FuzzUpstreamVhost(f *testing.F) {
	for _, seed := range []string{"", "a.example", "$service_name.svc", "${arg_x}:80", "$", "a b", "a\r\nX: 1", strings.Repeat("a", 1001)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		route, problems := featuretest.Read(upstreamvhost.Feature(), map[string]string{"upstream-vhost": text}, nil, feature.Objects{})
		want := 1
		if strings.TrimSpace(text) == "" {
			want = 0
		}
		if len(route.Policies)+len(problems) != want || route.Denied != (len(problems) > 0) {
			t.Fatalf("%q: policies %v, problems %v, denied %v", text, route.Policies, problems, route.Denied)
		}
		for _, p := range route.Policies {
			written, err := json.Marshal(p.Value)
			if err != nil || len(written) > 4000 || strings.ContainsAny(string(written), " ;\r\n\x00") {
				t.Errorf("%q: %s, %v", text, written, err)
			}
		}
	})
}
