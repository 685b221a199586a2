package stream_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/stream"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, stream.Feature()) }
