package ratelimit_test

import (
	"net/netip"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/ratelimit"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// What explain says of a request: the limits that may refuse it.
func TestPredict(t *testing.T) {
	f := ratelimit.Feature()
	all := map[string]string{"limit-rps": "5", "limit-rpm": "100", "limit-burst-multiplier": "2", "limit-connections": "7", "limit-allowlist": "10.0.0.0/8"}
	const (
		why = "429 if the client sends more than 5 requests per second, and 10 more at once (limit-rps); " +
			"429 if the client sends more than 100 requests per minute, and 200 more at once (limit-rpm); " +
			"503 if the client's requests in progress are more than 7 (limit-connections)"
		unless = why + "; unless the client's address is in limit-allowlist"
	)
	for _, c := range []struct {
		annotations map[string]string
		from        string
		want        string
	}{
		{all, "", unless},
		{all, "192.0.2.1", why},
		{all, "10.1.2.3", ""},
		{map[string]string{"limit-connections": "1"}, "10.1.2.3", "503 if the client's requests in progress are more than 1 (limit-connections)"},
		{map[string]string{"limit-rate": "20"}, "10.1.2.3", ""},
	} {
		route, problems := featuretest.Read(f, c.annotations, map[string]string{"limit-req-status-code": "429"}, feature.Objects{})
		if len(problems) > 0 || len(route.Policies) != 1 {
			t.Fatalf("%v: %d policies, problems %v", c.annotations, len(route.Policies), problems)
		}
		q := prediction.Request{Policy: route.Policies[0].Value}
		if c.from != "" {
			q.From = netip.MustParseAddr(c.from)
		}
		if got := f.Predict[prediction.LimitPhase](q); got != (prediction.Answer{Why: c.want}) {
			t.Errorf("%v from %s: %+v, want %q", c.annotations, c.from, got, c.want)
		}
	}
	window := map[string]string{
		"limit-connections": "1", "limit-allowlist": "10.0.0.0/8", "global-rate-limit": "9", "global-rate-limit-window": "90s", "global-rate-limit-key": "$http_x_api_key",
		"global-rate-limit-ignored-cidrs": "192.0.2.0/24",
	}
	const (
		local  = "503 if the client's requests in progress are more than 1 (limit-connections)"
		global = "429 if the client sends more than 9 requests in 1m30s to all replicas (global-rate-limit; needs the flag --limit-store); " +
			"a client is who has the same $http_x_api_key, and without one is not limited (global-rate-limit-key)"
	)
	for from, want := range map[string]string{
		"10.1.2.3": global, "192.0.2.1": local, "198.51.100.1": local + "; " + global,
		"": local + "; unless the client's address is in limit-allowlist; " + global + "; unless the client's address is in global-rate-limit-ignored-cidrs",
	} {
		route, _ := featuretest.Read(f, window, nil, feature.Objects{})
		q := prediction.Request{Policy: route.Policies[0].Value}
		if from != "" {
			q.From = netip.MustParseAddr(from)
		}
		if got := f.Predict[prediction.LimitPhase](q); got != (prediction.Answer{Why: want}) {
			t.Errorf("over replicas, from %s: %+v, want %q", from, got, want)
		}
	}
	keyed, _ := featuretest.Read(f, map[string]string{"limit-connections": "1"}, map[string]string{"limit-conn-zone-variable": "$http_x_api_key"}, feature.Objects{})
	const want = "503 if the client's requests in progress are more than 1 (limit-connections); " +
		"a client is who has the same $http_x_api_key, and without one is not limited (limit-conn-zone-variable)"
	if got := f.Predict[prediction.LimitPhase](prediction.Request{Policy: keyed.Policies[0].Value}); got != (prediction.Answer{Why: want}) {
		t.Errorf("by a key: %+v, want %q", got, want)
	}
}
