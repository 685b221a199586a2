package main

import (
	"strings"
	"testing"
)

// TestApply: of several upstreams, that of plain HTTP gets another balancer.
func TestApply(t *testing.T) {
	upstream := func(name string) string {
		return "    upstream " + name + " {\n        " + peerLine + "\n        " + balanceLine + "\n    }\n"
	}
	conf := upstream("hg_grpc") + upstream("hg_http") + upstream("hg_https_1") + "    server {\n        " + routeLine + "\n    }\n"
	for _, part := range copiedParts {
		got, err := part.apply(conf, 8080)
		if err != nil {
			t.Fatal(err)
		}
		others := upstream("hg_grpc")
		rest, found := strings.CutPrefix(got, others)
		if !found || !strings.Contains(rest, upstream("hg_https_1")) {
			t.Errorf("%s changes the upstreams of others:\n%s", part.name, got)
		}
		if strings.Count(got, balanceLine) != 2 || strings.Contains(got, routeLine) != (part.route == routeLine) || !strings.Contains(got, "8080") {
			t.Errorf("%s:\n%s", part.name, got)
		}
		if fixed := strings.Contains(got, "server 127.0.0.1:8080;"); fixed != (part.balance == "") {
			t.Errorf("%s names an endpoint without a balancer: %v", part.name, fixed)
		}
	}
	for _, without := range []string{routeLine, balanceLine, upstreamLine} {
		if _, err := copiedParts[0].apply(strings.ReplaceAll(conf, without, ""), 8080); err == nil {
			t.Errorf("a configuration without %s is accepted", without)
		}
	}
}
