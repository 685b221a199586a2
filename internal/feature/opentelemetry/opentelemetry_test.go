package opentelemetry_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/opentelemetry"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, opentelemetry.Feature()) }
