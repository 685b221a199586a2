package adminsnippet_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/adminsnippet"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, adminsnippet.Feature()) }
