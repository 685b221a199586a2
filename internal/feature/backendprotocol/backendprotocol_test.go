package backendprotocol_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/backendprotocol"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, backendprotocol.Feature()) }
