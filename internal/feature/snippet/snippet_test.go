package snippet_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/snippet"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, snippet.Feature()) }
