package publish_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A unit of no group goes to readers of the namespaces that need it, no matter which of both comes first, and for as long as
// they do.
func TestNeeded(t *testing.T) {
	s := publish.New()
	mine := s.Reader(func(namespace string) bool { return namespace == "mine" })
	other := s.Reader(func(namespace string) bool { return namespace == "other" })
	seen := func(r *publish.Reader) (got, gone []unit.Key) {
		t.Helper()
		cut, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range cut.Resources {
			got = append(got, one.Key)
		}
		return got, cut.Gone
	}
	auth, shown := unit.Backend.Key("/auth.test/80"), unit.Host.Key("a.test")
	needing := host("a.test", "1", "mine")
	needing.Resources[0].Needs = []unit.Key{auth}
	backend := publish.Change{Key: auth, Namespace: wire.NoGroup, Resources: []wire.Resource{{Key: auth, Version: "1"}}}
	seen(mine)
	seen(other)
	for _, step := range []struct {
		about     string
		change    publish.Change
		got, gone []unit.Key
	}{
		{"a host that needs what is not there", needing, []unit.Key{shown}, nil},
		{"what it needs", backend, []unit.Key{auth}, nil},
		{"the host without the need", host("a.test", "2", "mine"), []unit.Key{shown}, []unit.Key{auth}},
		{"the host with it again", needing, []unit.Key{auth, shown}, nil},
		{"no host", gone("a.test"), nil, []unit.Key{shown, auth}},
	} {
		s.Put(step.change)
		got, gone := seen(mine)
		if !slices.Equal(got, step.got) || !slices.Equal(gone, step.gone) {
			t.Errorf("%s: %v and no more %v, want %v and %v", step.about, got, gone, step.got, step.gone)
		}
		if got, _ := seen(other); len(got) > 0 {
			t.Errorf("%s: an other one gets %v", step.about, got)
		}
	}
}

// What is of a namespace that a reader gets from now on is sent.
func TestAppeared(t *testing.T) {
	s, takes := publish.New(), ""
	r := s.Reader(func(namespace string) bool { return namespace == takes })
	s.Put(host("a.test", "1", "mine", "users"), host("b.test", "1", "other"))
	if cut := next(t, r); len(cut.Resources) > 0 {
		t.Errorf("before: %v", cut.Resources)
	}
	takes = "mine"
	s.Appeared("mine")
	cut := next(t, r)
	if len(cut.Resources) != 2 || cut.Resources[1].Key != unit.Host.Key("a.test") {
		t.Errorf("it gets %v", cut.Resources)
	}
	if !s.Sees(unit.Host.Key("a.test"), func(namespace string) bool { return namespace == "mine" }) ||
		s.Sees(unit.Host.Key("b.test"), func(namespace string) bool { return namespace == "mine" }) || s.Sees(unit.Host.Key("c.test"), nil) {
		t.Error("who sees what is wrong")
	}
}
