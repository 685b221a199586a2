package directive_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

var (
	limit  = directive.Directive{Name: "limit", Plain: true, Kind: directive.Size, Order: directive.AtMost, Unlimited: true, Strictest: directive.Number(1)}
	any    = directive.Directive{Name: "any", Kind: directive.OnOff, Order: directive.Any, Only: []model.Protocol{model.HTTP}}
	same   = directive.Directive{Name: "same", Kind: directive.Choice, Words: []string{"red", "blue"}}
	set    = directive.Directive{Name: "set", Kind: directive.Set, Words: []string{"a", "b"}, Order: directive.Within, Strictest: directive.Number(0)}
	number = directive.Directive{Name: "number", Kind: directive.Count, Times: "limit", Order: directive.Any}
	catch  = directive.Directive{Name: "catch", Kind: directive.Statuses, Order: directive.Within}
	file   = directive.Directive{Name: "file", Kind: directive.File}
	list   = directive.List{limit, any, same, set, number, catch, file}
)

func with(values ...model.ProfileValue) model.Profile {
	return model.Profile{}.With(limit.To(1<<20), set.To(1), number.To(4)).With(values...)
}

func access() model.Profile {
	p := with()
	p.Access = true
	return p
}

func distance(l directive.List, p, asked model.Profile) int64 {
	return l.Values(p).Distance(l.Values(asked))
}

func TestMayReplace(t *testing.T) {
	t.Parallel()
	one, two := model.Content{Name: "a1"}, model.Content{Name: "b2"}
	tls, grpc := with(), with()
	tls.TLS, grpc.Protocol = true, model.GRPC
	for name, c := range map[string]struct {
		p, asked model.Profile
		stands   bool
	}{
		"the same":                {with(), with(), true},
		"less":                    {with(limit.To(1)), with(), true},
		"more":                    {with(limit.To(1 << 21)), with(), false},
		"no limit":                {with(limit.To(0)), with(), false},
		"a limit, none asked for": {with(), with(limit.To(0)), true},
		"another of any":          {with(any.When(true), number.To(9)), with(), true},
		"another of the same":     {with(same.To(1)), with(), false},
		"fewer":                   {with(set.To(0)), with(), true},
		"more members":            {with(set.To(3)), with(), false},
		"another file":            {with(file.Contains(one)), with(file.Contains(two)), false},
		"no file":                 {with(), with(file.Contains(one)), false},
		"a file, none asked for":  {with(file.Contains(one)), with(), false},
		"the same file":           {with(file.Contains(one)), with(file.Contains(one)), true},
		"fewer statuses":          {with(catch.Catch([]int{404})), with(catch.Catch([]int{503, 404})), true},
		"no statuses":             {with(), with(catch.Catch([]int{404})), true},
		"more statuses":           {with(catch.Catch([]int{404, 503})), with(catch.Catch([]int{404})), false},
		"statuses":                {with(catch.Catch([]int{404})), with(), false},
		"an access phase besides": {access(), with(), true},
		"without the access":      {with(), access(), false},
		"TLS":                     {with(), tls, false},
		"another protocol":        {grpc, with(), false},
		"undeclared":              {with(model.ProfileValue{Name: "other", Number: 1}), with(), false},
		"undeclared and asked":    {with(), with(model.ProfileValue{Name: "other", Number: 1}), false},
		"the strictest":           {list.Strictest(with()), access(), true},
	} {
		if got := list.Values(c.p).MayReplace(list.Values(c.asked)); got != c.stands {
			t.Errorf("%s: %v, want %v", name, got, c.stands)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	p := with(same.To(1), set.To(3))
	want := []string{"limit 1m;", "proxy_any off;", "proxy_same blue;", "proxy_set a b;", "proxy_number 4 1m;"}
	if got := list.Lines(p); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	p.Protocol = model.GRPC
	want = []string{"limit 1m;", "grpc_same blue;", "grpc_set a b;", "grpc_number 4 1m;"}
	if got := list.Lines(p); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := list.Lines(p.With(catch.Catch([]int{503, 404, 503})))[4:]; !slices.Equal(got, []string{"grpc_intercept_errors on;", "error_page 404 503 @error_page;"}) {
		t.Errorf("%q", got)
	}
	if got := list.Lines(p.With(file.Contains(model.Content{Name: "a1"})))[4:]; !slices.Equal(got, []string{"grpc_file files/a1;"}) {
		t.Errorf("%q", got)
	}
	if a, b, none := p.With(catch.Catch([]int{404, 500})), p.With(catch.Catch([]int{404, 502})), p.With(catch.Catch(nil)); none != p || !list.Catches(a) || list.Catches(none) ||
		distance(list, a, b) != 2*distance(list, a, p.With(catch.Catch([]int{404}))) || list.Against(a, none) != "catch 404 500, not none" {
		t.Errorf("statuses: %d, %s", distance(list, a, b), list.Against(a, none))
	}
	if against := list.Against(p.With(set.To(0)), p.With(limit.To(5))); against != "limit 1m, not 5; set off, not a b" {
		t.Error(against)
	}
}

// For all declarations of features, another value is a distance, and the strictest
// profile may stand in for the usual one. What is Set or Choice has words for all
// samples.
func TestWhatFeaturesDeclare(t *testing.T) {
	t.Parallel()
	declared := feature.Directives(all.Features())
	if len(declared) < 10 {
		t.Fatalf("only %d directives are declared", len(declared))
	}
	for _, d := range declared {
		asked := model.Profile{}.With(d.To(1))
		for _, sample := range d.Samples {
			p := model.Profile{}.With(d.To(sample))
			if len(declared.Lines(p)) == 0 || (distance(declared, p, asked) == 0) != (sample == 1) {
				t.Errorf("%s: %d", d.Name, sample)
			}
			if !declared.Values(declared.Strictest(p)).MayReplace(declared.Values(p)) && (d.Order == directive.AtMost || d.Order == directive.Within) && d.Of(p) >= *d.Strictest {
				t.Errorf("%s: the strictest does not stand in for %d", d.Name, sample)
			}
		}
	}
}

func TestEachNameIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two directives of one name were taken")
		}
	}()
	directive.Merge(directive.List{limit}, directive.List{limit})
}
