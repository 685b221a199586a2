package feature_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
)

// TestRecording: what is read is taken down with where it came from, each
// setting once, and only while it is asked for.
func TestRecording(t *testing.T) {
	both := feature.Setting[int]{Annotation: "both", Key: "both", Default: 1, Parse: feature.Int(1, 9)}
	guard := feature.Setting[bool]{Annotation: "guard", Parse: feature.Bool, OnInvalid: feature.Deny}
	list := feature.Setting[[]string]{Key: "list", Default: []string{"a", "b"}, Parse: feature.List}
	features := []feature.Feature{{Settings: []feature.Declared{both, guard, list}}}
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
		config, _ := feature.NewConfig(features, c.keys)
		reader := feature.NewReader("p", c.annotations, config)
		read := func() {
			both.Get(reader)
			guard.Get(reader)
			both.Get(reader)
			list.Get(reader)
		}
		read()
		for range 2 {
			if diff := cmp.Diff(c.want, reader.Recording(read)); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
		if got := reader.Recording(func() {}); len(got) != 0 {
			t.Errorf("%s: nothing was read, but recorded is %v", c.name, got)
		}
	}
}
