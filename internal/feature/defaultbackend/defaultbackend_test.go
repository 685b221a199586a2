package defaultbackend_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/defaultbackend"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, defaultbackend.Feature()) }
