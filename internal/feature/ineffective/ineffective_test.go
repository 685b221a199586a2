package ineffective_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/ineffective"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, ineffective.Feature()) }
