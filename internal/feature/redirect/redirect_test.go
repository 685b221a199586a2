package redirect_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/redirect"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, redirect.Feature()) }
