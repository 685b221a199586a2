package rewrite_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/rewrite"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, rewrite.Feature()) }
