package stapling_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/stapling"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, stapling.Feature()) }
