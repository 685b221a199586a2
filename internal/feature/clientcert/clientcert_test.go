package clientcert_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/clientcert"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, clientcert.Feature()) }
