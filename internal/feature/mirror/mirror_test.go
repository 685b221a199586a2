package mirror_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/mirror"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, mirror.Feature()) }
