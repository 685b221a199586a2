package basicauth_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/basicauth"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, basicauth.Feature()) }
