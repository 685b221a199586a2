package handshake_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/handshake"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, handshake.Feature()) }
