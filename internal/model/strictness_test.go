package model_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
)

func usual() model.Profile {
	return model.Profile{
		RequestBuffering: true, BufferSize: 4096, Buffers: 4, BodyStep: 1 << 20,
		BodyBuffer: 8192, BusyBuffers: 8192, TempFile: 1 << 30, Retry: model.Failure | model.Timeout, RetryTime: 2 * time.Second,
	}
}

// TestEveryFieldCounts: no field can come to a profile without a word on what
// another value of it is.
func TestEveryFieldCounts(t *testing.T) {
	for i := range reflect.TypeFor[model.Profile]().NumField() {
		other := usual()
		field := reflect.ValueOf(&other).Elem().Field(i)
		name := reflect.TypeFor[model.Profile]().Field(i).Name
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Int, reflect.Int64:
			field.SetInt(field.Int() * 2)
		case reflect.Uint16:
			field.SetUint(field.Uint() ^ uint64(model.Status503))
		default:
			t.Fatalf("%s is of a kind that this test does not know", name)
		}
		if other.Distance(usual()) == 0 || usual().Distance(other) == 0 {
			t.Errorf("profiles with another %s are no distance apart", name)
		}
		if other.Against(usual()) == "" {
			t.Errorf("nothing is told of another %s", name)
		}
	}
	if usual().Distance(usual()) != 0 || usual().Against(usual()) != "" {
		t.Error("a profile is not itself")
	}
}

func TestWithin(t *testing.T) {
	with := func(change func(*model.Profile)) model.Profile {
		p := usual()
		change(&p)
		return p
	}
	body := func(step int64, measure bool) model.Profile {
		return with(func(p *model.Profile) { p.BodyStep, p.MeasureBody = step, measure })
	}
	retry := func(set model.Outcomes) model.Profile {
		return with(func(p *model.Profile) { p.Retry = set })
	}
	for name, c := range map[string]struct {
		p, asked model.Profile
		within   bool
	}{
		"the same":                {usual(), usual(), true},
		"smaller bodies":          {body(1<<10, false), body(1<<20, true), true},
		"larger bodies":           {body(1<<20, true), body(1<<10, true), false},
		"bodies without a limit":  {body(0, false), body(1<<20, false), false},
		"a limit, none asked for": {body(1<<20, false), body(0, false), true},
		"measured":                {body(1<<20, true), body(1<<20, false), true},
		"not measured":            {body(1<<20, false), body(1<<20, true), false},
		"fewer retries":           {retry(model.Failure), retry(model.Failure | model.NonIdempotent), true},
		"more retries":            {retry(model.Failure | model.NonIdempotent), retry(model.Failure), false},
		"other buffers":           {with(func(p *model.Profile) { p.BufferSize, p.Buffering, p.OldProtocol = 1<<20, true, true }), usual(), true},
		"the strictest":           {usual().Strictest(), body(1<<10, true), true},
	} {
		if got := c.p.Within(c.asked); got != c.within {
			t.Errorf("%s: %v, want %v", name, got, c.within)
		}
	}
}
