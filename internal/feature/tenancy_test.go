package feature_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

func TestExempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key   string // empty for the default
		route model.Route
		want  bool
	}{
		{"", model.Route{Path: "/"}, false},
		{"", model.Route{Path: "/.well-known"}, false},
		{"", model.Route{Path: "/.well-known/acme-challenge"}, true},
		{"", model.Route{Path: "/.well-known/acme-challenge/x"}, true},
		{"", model.Route{Path: "/x/.well-known/acme-challenge"}, false},
		{"/open/, /b", model.Route{Path: "/open"}, false},
		{"/open/, /b", model.Route{Path: "/open", Slash: true}, true},
		{"/open/, /b", model.Route{Path: "/bee"}, true},
		{"/open/, /b", model.Route{Path: "/.well-known/acme-challenge"}, false},
		{"", model.Route{Path: "/.well-known/acme-challenge/(.*)"}, false},
		{"", model.Route{Path: "/.well-known/acme-challenge|/x"}, false},
		{" ", model.Route{Path: "/.well-known/acme-challenge"}, false},
	} {
		data := map[string]string{}
		if c.key != "" {
			data["no-auth-locations"] = c.key
		}
		config, problems := feature.NewSchema("p", nil).Config(data)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := feature.Exempt(config.Values(), c.route.Written()); got != c.want {
			t.Errorf("%q: %s (slash %v): %v, want %v", c.key, c.route.Path, c.route.Slash, got, c.want)
		}
	}
}
