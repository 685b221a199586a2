package worker_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/worker"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, worker.Feature()) }
