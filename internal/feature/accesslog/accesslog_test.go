package accesslog_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/accesslog"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, accesslog.Feature()) }
