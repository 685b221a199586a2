package serviceupstream_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/serviceupstream"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, serviceupstream.Feature()) }
