package affinity_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/affinity"
	"github.com/headgate/headgate/internal/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, affinity.Feature()) }
