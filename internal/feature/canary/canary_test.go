package canary_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/canary"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, canary.Feature()) }
