package feature_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
)

// TestReadings: settings are listed with where their values come from.
func TestReadings(t *testing.T) {
	both := feature.Setting[int]{Annotation: "both", Key: "both", Default: 1, Parse: feature.Int(1, 9), Scope: feature.ScopeName}
	guard := feature.Setting[bool]{Annotation: "guard", Parse: feature.Bool, OnInvalid: feature.Deny, Scope: feature.ScopeName}
	list := feature.Setting[[]string]{Key: "list", Default: []string{"a", "b"}, Parse: feature.List, Scope: feature.ScopeName}
	schema := feature.NewSchema("p", []feature.Feature{{Name: "f", Settings: []feature.AnySetting{both, guard, list}}})
	for _, c := range []struct {
		name              string
		annotations, keys map[string]string
		want              []feature.Reading
	}{
		{"nothing", nil, nil, []feature.Reading{
			{Annotation: "both", Key: "both", Value: "1", From: feature.FromDefault},
			{Annotation: "guard", Value: "false", From: feature.FromDefault},
			{Key: "list", Value: "a, b", From: feature.FromDefault},
		}},
		{"annotation before key", map[string]string{"p/both": " 3 ", "p/guard": "true", "p/list": "x"}, map[string]string{"both": "2", "list": "c"}, []feature.Reading{
			{Annotation: "both", Key: "both", Value: "3", From: feature.FromAnnotation, Written: "3"},
			{Annotation: "guard", Value: "true", From: feature.FromAnnotation, Written: "true"},
			{Key: "list", Value: "c", From: feature.FromKey},
		}},
		{"bad annotations", map[string]string{"p/both": "x", "p/guard": "", "p/": "y"}, map[string]string{"both": "2", "list": ""}, []feature.Reading{
			{Annotation: "both", Key: "both", Value: "2", From: feature.FromKey, Written: "x", Refused: true},
			{Annotation: "guard", Value: "false", From: feature.FromDefault, Refused: true, Denies: true},
			{Key: "list", From: feature.FromKey},
		}},
		{"bad keys", nil, map[string]string{"both": "x"}, []feature.Reading{
			{Annotation: "both", Key: "both", Value: "1", From: feature.FromDefault},
			{Annotation: "guard", Value: "false", From: feature.FromDefault},
			{Key: "list", Value: "a, b", From: feature.FromDefault},
		}},
	} {
		config, _ := schema.Config(c.keys)
		for i := range c.want {
			c.want[i].Feature, c.want[i].Ingress = "f", web
		}
		p := schema.Parse(web, c.annotations, config)
		got := slices.DeleteFunc(schema.Readings(p.Values(), feature.ScopeName, p.Problems()), func(r feature.Reading) bool { return r.Feature == "" })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
