package httpsredirect_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/httpsredirect"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, httpsredirect.Feature()) }
