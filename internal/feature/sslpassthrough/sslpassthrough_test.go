package sslpassthrough_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/sslpassthrough"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, sslpassthrough.Feature()) }
