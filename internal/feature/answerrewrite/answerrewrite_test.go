package answerrewrite_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature/answerrewrite"
	"github.com/headgate/headgate/internal/test/featuretest"
)

func TestGolden(t *testing.T) { featuretest.Golden(t, answerrewrite.Feature()) }
