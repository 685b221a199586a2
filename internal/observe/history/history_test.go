package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headgate/headgate/internal/unit"
)

// A clock goes on by a second when it is asked.
func clocked() *Log {
	l, at := New(), time.Unix(1000, 0)
	l.now = func() time.Time {
		at = at.Add(time.Second)
		return at
	}
	return l
}

func took(seconds float64) *float64 { return &seconds }

// TestChange: an event has the objects that were taken at once, what was pushed, and the time
// from the first arrival until it was applied.
func TestChange(t *testing.T) {
	l := clocked()
	l.Change(1, time.Unix(999, 0), "ingress/default/web", false)
	l.Change(1, time.Unix(998, 0), "ingress/default/old", false)
	l.Push([]unit.Change{{Kind: unit.Host, Name: "a.test"}, {Kind: unit.Name, Name: "b.test", Delete: true}})
	l.Apply(0)
	if e := l.Events()[0]; e.Took != nil {
		t.Errorf("applied too early: %v", *e.Took)
	}
	l.Apply(1) // 1001
	l.Apply(1)
	l.Change(2, time.Unix(1002, 0), "service/default/web", true)
	want := []Event{
		{ID: 2, Kind: Changed, At: time.Unix(1002, 0), Objects: []Object{{"service/default/web", true}}, Total: 1},
		{
			ID: 1, Kind: Changed, At: time.Unix(998, 0), Took: took(3),
			Objects: []Object{{"ingress/default/web", false}, {"ingress/default/old", false}}, Total: 2,
			Units: []Unit{{"host", "a.test", false}, {"name", "b.test", true}}, Pushed: 2,
		},
	}
	if diff := cmp.Diff(want, l.Events(), cmpopts.IgnoreUnexported(Event{})); diff != "" {
		t.Error(diff)
	}
}

func TestReloads(t *testing.T) {
	l := clocked()
	l.Reload("a profile", 2, time.Second, nil)
	l.Reload("a profile", 3, 0, errors.New("emerg"))
	l.Restart()
	list := l.Events()
	if list[0].Kind != Restarted || list[1].Error != "emerg" || list[2].Reason != "a profile" || *list[2].Took != 1 {
		t.Errorf("%+v", list)
	}
	if last := l.LastReload(); last == nil || last.Generation != 2 {
		t.Errorf("%+v", last)
	}
}

// TestBounds: nothing grows with the number of changes.
func TestBounds(t *testing.T) {
	l := New()
	for n := range 300 {
		for i := range 100 {
			l.Change(n, time.Time{}, fmt.Sprintf("ingress/default/%d", i), false)
			l.Push([]unit.Change{{Kind: unit.Host, Name: fmt.Sprint(i)}})
		}
	}
	list := l.Events()
	if len(list) != maxEvents || list[0].ID != 300 {
		t.Errorf("%d events, the newest %d", len(list), list[0].ID)
	}
	if e := list[0]; len(e.Objects) != maxNamed || len(e.Units) != maxNamed || e.Total != 100 || e.Pushed != 100 {
		t.Errorf("%d objects of %d, %d units of %d", len(e.Objects), e.Total, len(e.Units), e.Pushed)
	}
}

// TestNil: without the page, nothing is kept.
func TestNil(t *testing.T) {
	var l *Log
	l.Change(1, time.Time{}, "ingress/default/web", false)
	l.Push([]unit.Change{{}})
	l.Apply(1)
	l.Reload("", 0, 0, nil)
	l.Restart()
	if len(l.Events()) > 0 || l.LastReload() != nil {
		t.Error("it remembers something")
	}
}

// TestLongErrors: what NGINX says may be long, and only its beginning is kept.
func TestLongErrors(t *testing.T) {
	l := clocked()
	l.Reload("a profile", 2, 0, errors.New(strings.Repeat("é\n", 1<<20)))
	if got := l.Events()[0].Error; len(got) > maxError+len("…") || !strings.HasPrefix(got, "é\né") || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes are kept: %.40q", len(got), got)
	}
}
