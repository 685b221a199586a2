package serveralias_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/serveralias"
	"github.com/headgate/headgate/internal/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, serveralias.Feature()) }
