package explain_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/text"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestUnhealthyEndpoint: an explanation says why an endpoint that fails its checks gets no
// requests.
func TestUnhealthyEndpoint(t *testing.T) {
	s := explain.Settings{Builder: build.New(all.Features(), prefix), Features: all.Features(), Now: time.Unix(3, 0)}
	s.Store = store.New(store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true}, s.Builder.Refer)
	manifests := headgatetest.Service("web") + headgatetest.Endpoints("web", "10.0.0.1:80", "10.0.0.2:80") +
		headgatetest.Ingress("web", "a.test", "/", "web", "health-check: http", "health-check-path: /healthz")
	for _, object := range headgatetest.Decode(t, manifests) {
		s.Store.Apply(object, false)
	}
	for _, c := range []struct{ unhealthy, want string }{
		{"10.0.0.2:80", "10.0.0.2:80 ready, not used: it is unhealthy: GET /healthz: status 500, twice\n"},
		{"10.0.0.1:80,10.0.0.2:80", "10.0.0.2:80 ready, used though it is unhealthy: GET /healthz: status 500, twice\n"},
	} {
		health := &source.Health{ObjectMeta: metav1.ObjectMeta{Name: "default/web/80"}}
		for at := range strings.SplitSeq(c.unhealthy, ",") {
			health.Unhealthy = append(health.Unhealthy, source.UnhealthyEndpoint{Address: netip.MustParseAddrPort(at), Why: "GET /healthz: status 500, twice"})
		}
		s.Store.Apply(health, false)
		e, err := explain.Explain(explain.Query{URL: "http://a.test/"}, s)
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := text.Write(&page, &e, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), c.want) {
			t.Errorf("%s is not in\n%s", c.want, page.String())
		}
	}
}
