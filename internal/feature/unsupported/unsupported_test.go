package unsupported_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/unsupported"
	"github.com/headgate/headgate/internal/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, unsupported.Feature()) }
