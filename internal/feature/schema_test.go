package feature_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var web = model.Origin{Namespace: "shop", Ingress: "web"}

// TestProblemsAreShort gives values and errors of any length and content.
func TestProblemsAreShort(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("\x01", 200_000), strings.Repeat("é", 200_000), "\xff\xfe" + strings.Repeat("x", 500)} {
		repeat := feature.Setting[int]{Annotation: "a", Key: "k", Parse: func(text string) (int, error) { return 0, errors.New("must not be " + text) }}
		schema := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{repeat}}})
		config, problems := schema.Config(map[string]string{"k": text})
		problems = append(problems, schema.Parse(web, map[string]string{"p/a": text}, config).Problems()...)
		if len(problems) != 2 {
			t.Fatalf("problems %v", problems)
		}
		for _, p := range problems {
			if len(p.Message) > 700 || !utf8.ValidString(p.Message) || !strings.HasPrefix(p.Message, "invalid value ") || !strings.Contains(p.Message, ": must not be ") {
				t.Errorf("%d bytes: %q", len(p.Message), p.Message)
			}
		}
	}
}

// TestValuesAreRead: the annotation counts, else the key, else the default.
func TestValuesAreRead(t *testing.T) {
	setting := feature.Setting[int]{Annotation: "n", Key: "n", Default: 1, Parse: feature.Int(1, 9)}
	schema := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{setting}}})
	config, _ := schema.Config(map[string]string{"n": "3"})
	none, _ := schema.Config(nil)
	for _, c := range []struct {
		annotations    map[string]string
		config         *feature.Config
		want, problems int
	}{
		{map[string]string{"p/n": "5"}, config, 5, 0},
		{map[string]string{"p/n": "x"}, config, 3, 1},
		{nil, config, 3, 0},
		{nil, none, 1, 0},
	} {
		p := schema.Parse(web, c.annotations, c.config)
		if got := setting.Get(p.Values()); got != c.want || len(p.Problems()) != c.problems || p.Denied() {
			t.Errorf("%v: got %d, problems %v", c.annotations, got, p.Problems())
		}
	}
}

// TestWhen: a bad value of a setting, or of its key, denies only where the setting
// has an effect, and is reported everywhere.
func TestWhen(t *testing.T) {
	on := feature.Setting[bool]{Annotation: "on", Parse: feature.Bool, OnInvalid: feature.Deny}
	level := feature.Setting[int]{
		Annotation: "level", Key: "level", Parse: feature.Int(1, 9), OnInvalid: feature.Deny, When: func(v feature.Values) bool { return on.Get(v) },
	}
	// The condition is read after the setting.
	schema := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{level, on}}})
	for _, c := range []struct {
		on, level, key string
		denied         bool
		problems       int
	}{
		{"true", "x", "1", true, 1}, {"false", "x", "1", false, 1}, {"", "x", "1", false, 1}, {"true", "1", "x", false, 0},
		{"true", "", "x", true, 1}, {"false", "", "x", false, 1}, {"yse", "1", "1", true, 1},
	} {
		config, _ := schema.Config(map[string]string{"level": c.key})
		annotations := map[string]string{"p/level": c.level}
		if c.on != "" {
			annotations["p/on"] = c.on
		}
		p := schema.Parse(web, annotations, config)
		if p.Denied() != c.denied || len(p.Problems()) != c.problems {
			t.Errorf("%+v: denied %v, problems %+v", c, p.Denied(), p.Problems())
		}
	}
}

// TestAdminTextIsOfKeysAlone: no declaration lets an annotation's text into nginx.conf.
func TestAdminTextIsOfKeysAlone(t *testing.T) {
	panics := func(s feature.AnySetting) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		feature.NewSchema("p", []feature.Feature{{Name: "one", Settings: []feature.AnySetting{s}}})
		return false
	}
	type text = feature.Setting[model.AdminText]
	if panics(text{Key: "http-snippet", Parse: model.NewAdminText, Scope: feature.ScopeProcess}) {
		t.Error("a key of the process was not taken")
	}
	for name, s := range map[string]feature.AnySetting{
		"an annotation":             text{Annotation: "snippet", Parse: model.NewAdminText, Scope: feature.ScopeProcess},
		"an annotation with a key":  text{Annotation: "snippet", Key: "snippet", Parse: model.NewAdminText, Scope: feature.ScopeProcess},
		"an annotation of a route":  text{Annotation: "snippet", Parse: model.NewAdminText},
		"a key of a route":          text{Key: "snippet", Parse: model.NewAdminText},
		"a number by an annotation": feature.Setting[int]{Annotation: "workers", Parse: feature.Int(0, 9), Scope: feature.ScopeProcess},
	} {
		if !panics(s) {
			t.Errorf("%s was taken", name)
		}
	}
}
