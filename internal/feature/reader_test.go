package feature_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/feature"
)

// TestProblemsAreShort gives values and errors of any length and content.
func TestProblemsAreShort(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("\x01", 200_000), strings.Repeat("é", 200_000), "\xff\xfe" + strings.Repeat("x", 500)} {
		repeat := feature.Setting[int]{Annotation: "a", Key: "k", Parse: func(text string) (int, error) { return 0, errors.New("allowed is not " + text) }}
		config, problems := feature.NewConfig([]feature.Feature{{Settings: []feature.Declared{repeat}}}, map[string]string{"k": text})
		reader := feature.NewReader("p", map[string]string{"p/a": text}, config)
		repeat.Get(reader)
		problems = append(problems, reader.Problems()...)
		if len(problems) != 2 {
			t.Fatalf("problems %v", problems)
		}
		for _, p := range problems {
			if len(p.Message) > 700 || !utf8.ValidString(p.Message) || !strings.Contains(p.Message, "is no valid value: allowed is not ") {
				t.Errorf("%d bytes: %q", len(p.Message), p.Message)
			}
		}
	}
}

// TestReaderReadsOnce asks one reader twice for good, bad and missing values.
func TestReaderReadsOnce(t *testing.T) {
	parsed := 0
	setting := feature.Setting[int]{Annotation: "n", Key: "n", Default: 1, Parse: func(text string) (int, error) {
		parsed++
		return feature.Int(1, 9)(text)
	}}
	config, _ := feature.NewConfig([]feature.Feature{{Settings: []feature.Declared{setting}}}, map[string]string{"n": "3"})
	for _, c := range []struct {
		annotations            map[string]string
		want, parsed, problems int
	}{
		{map[string]string{"p/n": "5"}, 5, 1, 0},
		{map[string]string{"p/n": "x"}, 3, 1, 1},
		{map[string]string{}, 3, 0, 0},
	} {
		parsed = 0
		reader := feature.NewReader("p", c.annotations, config)
		for range 2 {
			if got := setting.Get(reader); got != c.want {
				t.Errorf("%v: got %d", c.annotations, got)
			}
		}
		if parsed != c.parsed || len(reader.Problems()) != c.problems {
			t.Errorf("%v: parsed %d times, problems %v", c.annotations, parsed, reader.Problems())
		}
	}
}
