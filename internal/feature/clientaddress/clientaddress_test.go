package clientaddress_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/clientaddress"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, clientaddress.Feature()) }
