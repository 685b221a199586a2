package unsupported_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/unsupported"
	"github.com/headgate/headgate/internal/featuretest"
	"github.com/headgate/headgate/internal/headgatetest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, unsupported.Feature()) }

func TestAccessControlDenies(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("one") +
		headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("open", "open.test", "/", "one") +
		headgatetest.Ingress("snippet", "snippet.test", "/", "one", "configuration-snippet: deny all;") +
		headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical")})
	g.Get("open.test", "/").WantStatus(t, 200)
	g.Get("snippet.test", "/").WantStatus(t, 503)
}
