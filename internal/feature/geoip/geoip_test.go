package geoip_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/geoip"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, geoip.Feature()) }
