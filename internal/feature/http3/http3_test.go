package http3_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/http3"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, http3.Feature()) }
