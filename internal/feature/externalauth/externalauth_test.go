package externalauth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/externalauth"
	"github.com/headgate/headgate/internal/featuretest"
	"github.com/headgate/headgate/internal/model"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, externalauth.Feature()) }

// Each request to the service carries the further headers: more than it can
// take are not tried.
func TestFurtherHeadersAreBounded(t *testing.T) {
	for _, c := range []struct {
		headers, bytes int
		denied         bool
	}{{64, 10, false}, {65, 10, true}, {4, 4000, false}, {5, 4000, true}} {
		data := map[string]string{}
		for i := range c.headers {
			data[fmt.Sprintf("X-%02d", i)] = strings.Repeat("x", c.bytes)
		}
		f := externalauth.Feature()
		config, _ := feature.NewConfig([]feature.Feature{f}, nil)
		origin, route := model.Origin{Namespace: "default", Ingress: "web"}, model.Route{}
		route.Origin = origin
		objects := feature.Objects{ConfigMap: func(feature.ObjectName) (map[string]string, bool) { return data, true }}
		r := feature.NewReader("p", map[string]string{"p/auth-url": "http://a.test/", "p/auth-proxy-set-headers": "headers"}, config).Of(origin, objects)
		f.Route(r, &route)
		if r.Denied() != c.denied {
			t.Errorf("%d headers of %d bytes: denied %v, %+v", c.headers, c.bytes, r.Denied(), r.Problems())
		}
	}
}
