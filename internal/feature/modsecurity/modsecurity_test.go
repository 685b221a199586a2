package modsecurity_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/modsecurity"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, modsecurity.Feature()) }
