package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// TestValueBound: beyond the bound of a directive, routes with further values are denied: those
// of the youngest Ingresses, by turns of the namespaces.
func TestValueBound(t *testing.T) {
	t.Parallel()
	d := directive.Directive{Name: "rules", Plain: true, Kind: directive.File, Most: 2}
	bound := newProfileBound(directive.List{d})
	host := func(name, namespace string, age int, value string) model.Host {
		var p model.Profile
		if value != "" {
			p = p.With(model.ProfileValue{Name: d.Name, Text: value})
		}
		return model.Host{Name: name, Routes: []model.Route{{
			Profile: p, Origin: model.Origin{Namespace: namespace, Ingress: name, Created: time.Unix(int64(age), 0)},
		}}}
	}
	hosts := []model.Host{
		host("a", "one", 1, "aa"), host("b", "one", 2, "bb"), host("c", "two", 3, "cc"), host("d", "two", 4, "aa"), host("e", "one", 5, ""),
	}
	decide := func(hosts []model.Host) string {
		for _, h := range hosts {
			bound.note(h)
		}
		bound.rebound()
		var denied []string
		for _, h := range hosts {
			fs := bound.bound(&h)
			if h.Routes[0].Denied {
				denied = append(denied, h.Name)
			}
			if h.Routes[0].Denied != (len(fs) == 1 && strings.Contains(fs[0].Message, "more than 2 different values of rules")) {
				t.Errorf("%s: %v", h.Name, fs)
			}
		}
		return fmt.Sprint(denied)
	}
	if got := decide(hosts); got != "[b]" {
		t.Errorf("denied %s", got)
	}
	bound.remove("c")
	if got := decide([]model.Host{hosts[0], hosts[1], hosts[3], hosts[4]}); got != "[]" {
		t.Errorf("denied %s when there are two", got)
	}
}

// TestProfilesWithValue: beyond the bound of profiles with a directive, routes get a stricter one
// with the same value, or are denied; profiles without it are not concerned.
func TestProfilesWithValue(t *testing.T) {
	t.Parallel()
	rules := directive.Directive{Name: "rules", Plain: true, Kind: directive.File, InMost: 3}
	size := directive.Directive{Name: "size", Kind: directive.Size, Order: directive.AtMost}
	bound := newProfileBound(directive.List{rules, size})
	var hosts []model.Host
	for i, c := range []struct {
		namespace, rules string
		size             int64
	}{{"one", "aa", 1}, {"one", "aa", 2}, {"one", "aa", 3}, {"two", "bb", 1}, {"two", "bb", 2}, {"one", "", 4}, {"one", "", 5}} {
		p := model.Profile{}.With(model.ProfileValue{Name: "size", Number: c.size})
		if c.rules != "" {
			p = p.With(model.ProfileValue{Name: rules.Name, Text: c.rules})
		}
		hosts = append(hosts, model.Host{Name: fmt.Sprint("h", i), Routes: []model.Route{{
			Profile: p, Origin: model.Origin{Namespace: c.namespace, Ingress: fmt.Sprint("i", i), Created: time.Unix(int64(i), 0)},
		}}})
	}
	for _, h := range hosts {
		bound.note(h)
	}
	bound.rebound()
	var got []string
	for _, h := range hosts {
		asked := h.Routes[0].Profile
		fs := bound.bound(&h)
		r := h.Routes[0]
		got = append(got, fmt.Sprint(r.Profile.Get("rules").Text, r.Profile.Get("size").Number, r.Denied))
		if (r.Profile != asked) != (len(fs) == 1 && strings.Contains(fs[0].Message, "more than 3 different combinations of static settings with rules")) {
			t.Errorf("%s: %v", h.Name, fs)
		}
	}
	if want := "aa1 false aa2 false aa2 false bb1 false bb1 false 4 false 5 false"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}
