package balancing_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/balancing"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, balancing.Feature()) }
