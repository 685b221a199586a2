package ratelimit_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/ratelimit"
	"github.com/headgate/headgate/internal/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, ratelimit.Feature()) }
