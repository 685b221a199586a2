package feature_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

var (
	size   = feature.Setting[int64]{Annotation: "size", Parse: quantity.Size(0, 1000)}
	checks = feature.Setting[bool]{Annotation: "checks", Parse: feature.Either("on", "off"), OnInvalid: feature.Deny}
	text   = feature.Setting[string]{Annotation: "text", Parse: func(text string) (string, error) { return text, nil }}
)

// implier takes "NAME VALUE" in the annotation text for annotations, and those behind "all"
// for all routes of a host.
func implier() feature.Feature {
	return feature.Feature{
		Name: "implier", Settings: []feature.AnySetting{size, checks, text},
		Implies: func(v feature.Values, scope feature.Scope) []feature.Implied {
			own, ofHost, _ := strings.Cut(text.Get(v), "all ")
			if scope == feature.ScopeHost {
				own = ofHost
			}
			name, value, is := strings.Cut(own, " ")
			if !is {
				return nil
			}
			return []feature.Implied{{Annotation: name, Text: value, By: text, Where: "line 1"}}
		},
	}
}

func TestImplied(t *testing.T) {
	t.Parallel()
	schema := feature.NewSchema("p", []feature.Feature{implier()})
	config, _ := schema.Config(nil)
	parse := func(name string, annotations map[string]string) *feature.Parsed {
		return schema.Parse(model.Origin{Namespace: "a", Ingress: name}, annotations, config)
	}
	for _, c := range []struct {
		annotations map[string]string
		want        int64
		denied      bool
		problem     string
	}{
		{map[string]string{"p/text": "size 7"}, 7, false, ""},
		{map[string]string{"p/text": "size 7", "p/size": "5"}, 5, false, "line 1: the value of the annotation size applies"},
		{map[string]string{"p/text": "size x"}, 0, false, `line 1: invalid value "x": must be`},
		{map[string]string{"p/text": "checks yes"}, 0, true, `line 1: invalid value "yes": must be`},
		{map[string]string{"p/text": "all size 7"}, 0, false, ""},
		{map[string]string{"p/size": "5"}, 5, false, ""},
	} {
		p := parse("i", c.annotations)
		problem := ""
		for _, one := range p.Problems() {
			problem += one.Message
			if one.Field != "p/text" {
				t.Errorf("%v: the field %s", c.annotations, one.Field)
			}
		}
		if got := size.Get(p.Values()); got != c.want || p.Denied() != c.denied || !strings.HasPrefix(problem, c.problem) || c.problem == "" && problem != "" {
			t.Errorf("%v: %d, denied %v, %q", c.annotations, got, p.Denied(), problem)
		}
	}
	owners := []*feature.Parsed{
		parse("none", nil), parse("says", map[string]string{"p/text": "all size 7"}),
		parse("own", map[string]string{"p/size": "5"}), parse("late", map[string]string{"p/text": "all size 9"}),
	}
	var got []int64
	for _, p := range schema.ImplyOfHost(owners) {
		got = append(got, size.Get(p.Values()))
	}
	if diff := cmp.Diff([]int64{7, 7, 5, 7}, got); diff != "" {
		t.Error(diff)
	}
	if size.Get(owners[0].Values()) != 0 {
		t.Error("the Ingress itself has changed")
	}
	for _, r := range schema.Readings(schema.ImplyOfHost(owners)[0].Values(), feature.ScopeRoute, nil) {
		if r.Annotation == "size" && (r.By != "text" || r.Where != "line 1" || r.Ingress.Ingress != "says" || r.From != feature.FromAnnotation) {
			t.Errorf("%+v", r)
		}
	}
}
