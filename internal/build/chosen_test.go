package build

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

func texts(list ...string) (g model.Globals) {
	for i, text := range list {
		*g.Process.Snippets.At(model.Places()[i]), _ = model.NewAdminText(text)
	}
	return g
}

func list(g model.Globals) string {
	var all []string
	for _, place := range model.Places()[:4] {
		all = append(all, g.Process.Snippets.At(place).String())
	}
	return strings.Join(all, "|")
}

// TestChoose: the fewest texts are refused, those that NGINX finds at fault, or else those without
// which it finds none.
func TestChoose(t *testing.T) {
	t.Parallel()
	bad := func(place model.Place) error { return &feature.RejectedError{Reason: "bad", Place: place, Line: 3} }
	// What NGINX says, by what it is asked. It takes all else.
	for name, c := range map[string]struct {
		wanted, last []string
		says         map[string]error
		want         string
		refused      feature.Refusals
	}{
		"all good":        {wanted: []string{"m;", "h;"}, want: "m;|h;||"},
		"a place":         {wanted: []string{"m;", "h;"}, says: map[string]error{"m;|h;||": bad(model.InHTTP)}, want: "m;|||", refused: feature.Refusals{model.InHTTP: {Reason: "bad", Line: 3}}},
		"the last stays":  {wanted: []string{"m;", "h;"}, last: []string{"", "old;"}, says: map[string]error{"m;|h;||": bad(model.InHTTP)}, want: "m;|old;||", refused: feature.Refusals{model.InHTTP: {Reason: "bad", Line: 3, Kept: true}}},
		"no place":        {wanted: []string{"m;", "h;"}, says: map[string]error{"m;|h;||": bad(""), "|h;||": bad("")}, want: "m;|||", refused: feature.Refusals{model.InHTTP: {Reason: "bad"}}},
		"any of two":      {wanted: []string{"m;", "h;"}, says: map[string]error{"m;|h;||": bad("")}, want: "|h;||", refused: feature.Refusals{model.InMain: {Reason: "bad"}}},
		"all":             {wanted: []string{"m;", "h;"}, says: map[string]error{"m;|h;||": bad(""), "|h;||": bad(""), "m;|||": bad("")}, want: "|||", refused: feature.Refusals{model.InMain: {Reason: "bad"}, model.InHTTP: {Reason: "bad"}}},
		"by itself":       {wanted: []string{"m;", "h"}, want: "m;|||", refused: feature.Refusals{model.InHTTP: {Reason: `the directive "h" does not end in ";"`, Line: 1}}},
		"can't be tested": {wanted: []string{"m;"}, last: []string{"old;"}, says: map[string]error{"m;|||": &feature.UntestedError{Err: errors.New("no room")}}, want: "old;|||", refused: feature.Refusals{model.InMain: {Reason: "not tested: no room", Kept: true, Waits: true}}},
		"other settings":  {wanted: []string{"m;"}, last: []string{"m;"}, says: map[string]error{"m;|||": bad("")}, want: "m;|||", refused: feature.Refusals{model.InMain: {Reason: "bad", Kept: true}}},
	} {
		whole := Whole{
			Try:  func(g model.Globals) error { return c.says[list(g)] },
			Last: func() (model.Globals, bool) { return texts(c.last...), c.last != nil },
		}
		g, refused := choose(texts(c.wanted...), false, whole)
		if got := list(g); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if len(refused)+len(c.refused) > 0 {
			if diff := cmp.Diff(c.refused, refused); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// TestKeptSettings: where a good text does not fit other settings any more, those stay as well.
func TestKeptSettings(t *testing.T) {
	t.Parallel()
	last, wanted := texts("m;"), texts("m;")
	last.Process.Workers, wanted.Process.Workers = 1, 2
	wanted.Policies = []model.Policy{{Feature: "new"}}
	for name, c := range map[string]struct {
		bare error
		want int
	}{
		"because of the text": {nil, 1},
		"in any case":         {errors.New("bad"), 2},
	} {
		g, _ := choose(wanted, false, Whole{
			Try: func(g model.Globals) error {
				if g.Process.Snippets.IsZero() {
					return c.bare
				}
				return errors.New("bad")
			},
			Last: func() (model.Globals, bool) { return last, true },
		})
		if g.Process.Workers != c.want || len(g.Policies) != 1 {
			t.Errorf("%s: %+v", name, g.Process.Workers)
		}
	}
}

// TestRoutingLines: what decides before requests are routed has no place where Lua joins addresses.
func TestRoutingLines(t *testing.T) {
	t.Parallel()
	joins := texts("", "", "gzip on; if ($x) { return 403; }")
	joins.Process.ClientAddress = model.ClientAddress{For: model.ForwardedFor, ProxyProtocol: true}
	if _, refused := choose(joins, false, Whole{}); len(refused) != 1 {
		t.Errorf("%+v", refused)
	}
	joins.Process.ClientAddress.ProxyProtocol = false
	if _, refused := choose(joins, false, Whole{}); len(refused) != 0 {
		t.Errorf("%+v", refused)
	}
	if _, refused := choose(joins, true, Whole{}); len(refused) != 1 {
		t.Errorf("%+v", refused)
	}
}
