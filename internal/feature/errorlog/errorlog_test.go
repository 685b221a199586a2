package errorlog_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/errorlog"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, errorlog.Feature()) }
