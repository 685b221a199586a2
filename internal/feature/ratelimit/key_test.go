package ratelimit_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// An address within a longer key is that of one client alone, in each of its forms.
func TestAddressWithinKey(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"$binary_remote_addr", "$binary_remote_addr$http_x", "$remote_addr$http_x", "$the_real_ip$http_x"} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Ingress("web", "a.test", "/", "a", once...) +
			headgatetest.Config("limit-conn-zone-variable: "+variable, "enable-real-ip: true", "proxy-real-ip-cidr: 127.0.0.1/32")})
		for _, c := range []struct {
			from, x string
			want    int
		}{
			{"203.0.113.1", "1", 200}, {"203.0.113.11", "", 200}, {"::ffff:203.0.113.11", "", 503},
		} {
			header := http.Header{"X-Forwarded-For": {c.from}}
			if c.x != "" {
				header.Set("X", c.x)
			}
			if got := g.Do(headgatetest.Request{Host: "a.test", Header: header}).Status; got != c.want {
				t.Errorf("%s: %s with %q: status %d, want %d", variable, c.from, c.x, got, c.want)
			}
		}
	}
}
