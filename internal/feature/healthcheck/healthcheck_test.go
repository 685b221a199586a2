package healthcheck_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/healthcheck"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, healthcheck.Feature()) }
