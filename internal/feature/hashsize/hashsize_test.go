package hashsize_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/hashsize"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, hashsize.Feature()) }
