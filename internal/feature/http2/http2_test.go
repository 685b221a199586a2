package http2_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/http2"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, http2.Feature()) }
