package ejection_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/ejection"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, ejection.Feature()) }
