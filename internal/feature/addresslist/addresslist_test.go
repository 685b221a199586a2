package addresslist_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/addresslist"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, addresslist.Feature()) }
