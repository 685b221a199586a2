package satisfy_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/satisfy"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, satisfy.Feature()) }
