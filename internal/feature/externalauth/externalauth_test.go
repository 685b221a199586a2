package externalauth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/externalauth"
	"github.com/headgate/headgate/internal/test/featuretest"
)

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
		objects := feature.Objects{ConfigMap: func(feature.ObjectName) (map[string]string, bool) { return data, true }}
		annotations := map[string]string{"auth-url": "http://a.test/", "auth-proxy-set-headers": "headers"}
		route, problems := featuretest.Read(externalauth.Feature(), annotations, nil, objects)
		if route.Denied != c.denied {
			t.Errorf("%d headers of %d bytes: denied %v, %+v", c.headers, c.bytes, route.Denied, problems)
		}
	}
}
