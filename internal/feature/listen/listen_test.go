package listen_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/listen"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, listen.Feature()) }
