package proxying_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/proxying"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, proxying.Feature()) }
