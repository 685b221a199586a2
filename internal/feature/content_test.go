package feature_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

func TestAttach(t *testing.T) {
	t.Parallel()
	var route model.Route
	a, b := feature.Attach(&route, model.NewContent([]byte("a"))), feature.Attach(&route, model.NewContent([]byte("b")))
	if a == b || len(route.Contents) != 2 || route.Contents[0].Name != a || string(route.Contents[1].Bytes) != "b" {
		t.Errorf("%q and %q, %q", a, b, route.Contents)
	}
	if again := model.NewContent([]byte("a")).Name; again != a {
		t.Errorf("equal bytes are named %q and %q", a, again)
	}
}
