package publish_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A view is what a reader has made of its cuts.
type view map[unit.Key]wire.Resource

// apply takes a cut, one resource after the other: at no time does one refer to another that is not there.
func (v view) apply(t *testing.T, cut publish.Cut) {
	t.Helper()
	whole := func() {
		for _, r := range v {
			for _, key := range r.Refers {
				if _, ok := v[key]; !ok {
					t.Fatalf("%s is there without %s", r.Key, key)
				}
			}
		}
	}
	for _, r := range cut.Resources {
		v[r.Key] = r
		whole()
	}
	for _, key := range cut.Gone {
		delete(v, key)
		whole()
	}
}

func (v view) versions() map[unit.Key]string {
	list := map[unit.Key]string{}
	for key, r := range v {
		list[key] = r.Version
	}
	return list
}

func host(name, version, namespace string, contents ...string) publish.Change {
	first := wire.Resource{Key: unit.Host.Key(name), Version: version, Bytes: []byte(version)}
	c := publish.Change{Key: first.Key, Namespace: namespace}
	for _, content := range contents {
		key := unit.Content.Key(content)
		first.Refers = append(first.Refers, key)
		c.Resources = append(c.Resources, wire.Resource{Key: key, Version: content, Bytes: []byte(content)})
	}
	c.Resources = append([]wire.Resource{first}, c.Resources...)
	return c
}

func gone(name string) publish.Change { return publish.Change{Key: unit.Host.Key(name)} }

func next(t *testing.T, r *publish.Reader) publish.Cut {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cut, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

// nothing wants that a reader has all there is.
func nothing(t *testing.T, r *publish.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if cut, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v: want nothing", cut, err)
	}
}

// After any changes, readers that look at any time have what is theirs, and at no time a part without
// what it refers to.
func TestReadersAgree(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	namespaces := []string{"", "a", "b", "c"}
	s := publish.New()
	type reader struct {
		*publish.Reader
		view  view
		takes func(string) bool
	}
	var readers []*reader
	for _, takes := range []func(string) bool{nil, func(n string) bool { return n == "a" }, func(n string) bool { return n == "b" || n == "c" }} {
		r := &reader{view: view{}, takes: takes}
		r.Reader = s.Reader(takes)
		r.view.apply(t, next(t, r.Reader))
		readers = append(readers, r)
	}
	wanted := map[string]publish.Change{}
	put := func() {
		var changes []publish.Change
		for range 1 + random.IntN(3) {
			name := fmt.Sprint(random.IntN(12))
			if slices.ContainsFunc(changes, func(c publish.Change) bool { return c.Name == name }) {
				continue
			}
			if random.IntN(3) == 0 {
				changes = append(changes, gone(name))
				delete(wanted, name)
				continue
			}
			var contents []string
			for content := range 5 {
				if random.IntN(3) == 0 {
					contents = append(contents, fmt.Sprint("c", content))
				}
			}
			c := host(name, fmt.Sprint(random.IntN(3), contents), namespaces[random.IntN(len(namespaces))], contents...)
			changes = append(changes, c)
			wanted[name] = c
		}
		s.Put(changes...)
	}
	for step := range 3000 {
		put()
		for i, r := range readers {
			if random.IntN(4) > 0 && step < 2999 {
				continue
			}
			if random.IntN(10) == 0 {
				// It comes back with what it has.
				r.Close()
				r.Reader = s.Reader(r.takes)
				// Something may change until it has said what it has, and until it gets the first cut.
				for range random.IntN(2) {
					put()
				}
				if err := r.Hold(maps.All(r.view.versions())); err != nil {
					t.Fatal(err)
				}
				for range random.IntN(2) {
					put()
				}
				r.view.apply(t, next(t, r.Reader))
			}
			for {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				cut, err := r.Next(ctx)
				if err != nil {
					break
				}
				r.view.apply(t, cut)
			}
			want := map[unit.Key]string{}
			for _, c := range wanted {
				if r.takes == nil || c.Namespace == "" || r.takes(c.Namespace) {
					for _, one := range c.Resources {
						want[one.Key] = one.Version
					}
				}
			}
			if got := r.view.versions(); !maps.Equal(got, want) {
				t.Fatalf("seed %d, step %d, reader %d has %v, want %v", seed, step, i, got, want)
			}
		}
	}
}

// A reader that comes back gets what differs from what it has, and nothing else.
func TestComesBack(t *testing.T) {
	s := publish.New()
	s.Put(host("a", "1", "n"), host("b", "1", "n"), host("c", "1", "n"))
	r := s.Reader(nil)
	held := map[unit.Key]string{unit.Host.Key("a"): "1", unit.Host.Key("b"): "other", unit.Host.Key("gone"): "1"}
	if err := r.Hold(maps.All(held)); err != nil {
		t.Fatal(err)
	}
	cut := next(t, r)
	var got []string
	for _, one := range cut.Resources {
		got = append(got, one.Name)
	}
	if !slices.Equal(got, []string{"b", "c"}) || !slices.Equal(cut.Gone, []unit.Key{unit.Host.Key("gone")}) {
		t.Errorf("it gets %v, and without %v", got, cut.Gone)
	}
	nothing(t, r)
}

// A slow reader gets the newest version, once.
func TestOnlyTheNewest(t *testing.T) {
	s := publish.New()
	r := s.Reader(nil)
	if cut := next(t, r); len(cut.Resources)+len(cut.Gone) != 0 {
		t.Errorf("the first cut of nothing is %v", cut)
	}
	for i := range 100 {
		s.Put(host("a", fmt.Sprint(i), "n"))
	}
	if cut := next(t, r); len(cut.Resources) != 1 || cut.Resources[0].Version != "99" {
		t.Errorf("it gets %v", cut)
	}
	s.Put(host("a", "99", "n"))
	nothing(t, r)
	s.Put(host("b", "1", "n"), gone("b"))
	s.Put(gone("a"), gone("never"))
	if cut := next(t, r); len(cut.Resources) != 0 || !slices.Contains(cut.Gone, unit.Host.Key("a")) {
		t.Errorf("it gets %v", cut)
	}
	nothing(t, r)
}

// A change wakes those that wait.
func TestWakes(t *testing.T) {
	s := publish.New()
	r := s.Reader(nil)
	next(t, r)
	got := make(chan publish.Cut, 1)
	go func() {
		cut, _ := r.Next(context.WithoutCancel(t.Context()))
		got <- cut
	}()
	s.Put(host("a", "1", "n"))
	select {
	case cut := <-got:
		if len(cut.Resources) != 1 {
			t.Errorf("it gets %v", cut)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
}

// What is gone does not stay in memory for a reader that does not read: it has to begin again.
func TestGoneIsForgotten(t *testing.T) {
	s := publish.New()
	stuck, reads := s.Reader(nil), s.Reader(nil)
	next(t, stuck)
	next(t, reads)
	for i := range 5000 {
		s.Put(host(fmt.Sprint(i), "1", "n", fmt.Sprint("c", i)))
		s.Put(gone(fmt.Sprint(i)))
		next(t, reads)
	}
	if size := s.Size(); size.Resources != 0 || size.Bytes != 0 || size.Readers != 1 {
		t.Errorf("it has %+v", size)
	}
	if _, err := stuck.Next(t.Context()); !errors.Is(err, publish.ErrLate) {
		t.Errorf("the reader that did not read gets %v", err)
	}
	nothing(t, reads)
}

// What a reader says that it has takes a bounded amount of memory: more is refused, but not what is as it is here.
func TestTooMuchIsHeld(t *testing.T) {
	s := publish.New()
	name := strings.Repeat("x", 1<<20)
	s.Put(publish.Change{Key: unit.Host.Key(name), Resources: []wire.Resource{{Key: unit.Host.Key(name), Version: "1"}}})
	hold := func(r *publish.Reader, version string, times int) error {
		return r.Hold(func(yield func(unit.Key, string) bool) {
			for range times {
				if !yield(unit.Host.Key(name), version) {
					return
				}
			}
		})
	}
	r := s.Reader(nil)
	if err := errors.Join(hold(r, "1", 100), hold(r, "2", 63)); err != nil {
		t.Error(err)
	}
	if hold(r, "2", 1) == nil {
		t.Error("it may hold more and more")
	}
}
