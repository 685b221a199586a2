package requestheaders_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/requestheaders"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, requestheaders.Feature()) }
