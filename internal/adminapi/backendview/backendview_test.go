package backendview

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestName(t *testing.T) {
	for key, want := range map[string]string{
		"default/web/80":   "default-web-80",
		"default/web/http": "default-web-http",
		"default/web/":     "default-web",
		"/auth.test/443":   "auth.test-443",
	} {
		if got := Name(key); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

// TestPickers: what ingress-nginx shows of how endpoints are chosen.
func TestPickers(t *testing.T) {
	cookie := func(mode string, moves bool) Backend {
		return Backend{LoadBalance: "round_robin", SessionAffinity: SessionAffinity{"cookie", mode, SessionCookie{"C", moves}}}
	}
	for picker, want := range map[string]Backend{
		``:                                   {LoadBalance: "round_robin"},
		`["balancing",{"algorithm":"ewma"}]`: {LoadBalance: "ewma"},
		`["balancing",{"algorithm":"chash","key":"[\"x-\",[\"request_uri\"],[\"http\",\"a_b\"],[\"group\",\"1\"]]"}]`: {
			LoadBalance: "round_robin", UpstreamHashBy: UpstreamHashBy{By: "x-${request_uri}${http_a_b}${1}"},
		},
		`["balancing",{"algorithm":"chash","key":"[[\"uri\"]]","subset":3}]`: {
			LoadBalance: "round_robin", UpstreamHashBy: UpstreamHashBy{"${uri}", true, 3},
		},
		`["affinity",{"cookie":"C"}]`:                                cookie("balanced", false),
		`["affinity",{"cookie":"C","persistent":true,"moves":true}]`: cookie("persistent", true),
	} {
		payload := `{"endpoints":["[::1]:80"]}`
		if picker != "" {
			payload = `{"endpoints":["[::1]:80"],"picker":` + picker + `}`
		}
		got, err := From("ns/svc/80", "1", json.RawMessage(payload), nil)
		if err != nil {
			t.Errorf("%s: %v", picker, err)
		}
		want.Name, want.Port, want.Endpoints = "ns-svc-80", uint64(80), []Endpoint{{"::1", "80"}}
		want.Service.Metadata.Namespace, want.Service.Metadata.Name = "ns", "svc"
		want.Headgate = OfHeadgate{"ns/svc/80", "1", json.RawMessage(payload)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", picker, diff)
		}
	}
}

const canaries = `{
	"backends": ["ns/a/80", "ns/b/80"],
	"policies": [["proxying", {}], ["canary", [
		{"backend": "ns/next/80", "when": {"header": "x_next", "value": "v", "cookie": "c", "share": 0.0625}},
		{"backend": "ns/b/80", "when": {"share": 0.5}}]]],
	"routes": [{"prefix": "/", "backend": 1, "location": 1, "policies": [1, 2]}, {"prefix": "/b", "backend": 2, "location": 1}, {"prefix": "/none", "location": 1}]
}`

// TestRoles: a canary is shown at itself and at the backend that it is a canary of.
func TestRoles(t *testing.T) {
	roles := Roles{}
	for range 2 {
		if err := roles.Add(json.RawMessage(canaries)); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]Backend{
		"ns/a/80":    {AlternativeBackends: []string{"ns-next-80", "ns-b-80"}},
		"ns/b/80":    {TrafficShapingPolicy: TrafficShaping{Weight: 50, WeightTotal: 100}},
		"ns/next/80": {NoServer: true, TrafficShapingPolicy: TrafficShaping{625, 10000, "x-next", "v", "", "c"}},
		"ns/free/80": {},
	} {
		got, err := From(key, "1", json.RawMessage(`{"endpoints":[]}`), roles)
		if err != nil {
			t.Fatal(err)
		}
		got = Backend{NoServer: got.NoServer, TrafficShapingPolicy: got.TrafficShapingPolicy, AlternativeBackends: got.AlternativeBackends}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func FuzzFrom(f *testing.F) {
	f.Add("ns/a/80", `{"endpoints":["1.2.3.4:80"],"picker":["balancing",{"key":"[[\"uri\"]]"}]}`, canaries)
	f.Add("", `{"picker":["affinity"]}`, `{"policies":[["canary"]]}`)
	f.Fuzz(func(t *testing.T, key, backend, host string) {
		roles := Roles{}
		if roles.Add(json.RawMessage(host)) != nil {
			return
		}
		b, err := From(key, "1", json.RawMessage(backend), roles)
		if err != nil {
			return
		}
		if text, err := json.Marshal(b); err != nil || !strings.Contains(string(text), `"sslPassthrough":false`) {
			t.Errorf("%v: %s", err, text)
		}
	})
}
