package clientheader_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/clientheader"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, clientheader.Feature()) }
