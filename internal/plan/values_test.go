package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/model"
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
