package process_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/process"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, process.Feature()) }
