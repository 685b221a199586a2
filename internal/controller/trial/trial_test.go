package trial

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/unit"
)

// fakeTester answers each try after a while, a millisecond by default, and remembers nothing.
type fakeTester struct {
	takes  time.Duration
	answer error
	known  bool
	tries  int
}

func (f *fakeTester) Tried(feature.Trial) (error, bool) { return f.answer, f.known } //nolint:revive,staticcheck // As the interface says.

func (f *fakeTester) Try(context.Context, feature.Trial) error {
	f.tries++
	time.Sleep(cmp.Or(f.takes, time.Millisecond))
	return f.answer
}

// TestTrials: a host is built again until its trials could be made, and their time is its own.
func TestTrials(t *testing.T) {
	tester := &fakeTester{}
	tried := New(tester, slog.New(slog.DiscardHandler))
	tried.Begin(time.Hour)
	full := &feature.UntestedError{Err: errors.New("no space left")}
	for _, c := range []struct {
		answer error
		again  bool
	}{{nil, false}, {full, true}, {full, true}, {&nginx.ConfError{Reason: "wrong"}, false}} {
		tester.answer = c.answer
		if err := tried.Run(feature.Trial{}); !errors.Is(err, c.answer) {
			t.Errorf("%v: %v", c.answer, err)
		}
		if took := tried.Built(unit.Host.Key("a.test"), "shop"); took < time.Millisecond {
			t.Errorf("%v: the trial took %v", c.answer, took)
		}
		if again := tried.again.Due != nil && tried.untried[unit.Host.Key("a.test")] == "shop"; again != c.again {
			t.Errorf("%v: another trial: %v", c.answer, again)
		}
		if took := tried.Built(unit.Host.Key("b.test"), "shop"); took != 0 {
			t.Errorf("a host without trials took %v", took)
		}
		if again := tried.again.Due != nil; again != c.again {
			t.Errorf("%v: another trial after another host: %v", c.answer, again)
		}
	}
}

// TestTrialsTakeTurns: trials that would hold the controller up for longer than allowed wait,
// but for those whose results are known.
func TestTrialsTakeTurns(t *testing.T) {
	tester := &fakeTester{}
	tried := New(tester, slog.New(slog.DiscardHandler))
	untested := (*feature.UntestedError)(nil)
	for turn := 1; turn < 3; turn++ {
		tried.Begin(time.Microsecond)
		if err := tried.Run(feature.Trial{}); err != nil {
			t.Error(err)
		}
		if err := tried.Run(feature.Trial{}); !errors.As(err, &untested) || tester.tries != turn {
			t.Errorf("after the time of a turn: %v, %d tries", err, tester.tries)
		}
		if tried.Built(unit.Host.Key("a.test"), "shop"); tried.untried[unit.Host.Key("a.test")] != "shop" {
			t.Error("the host is not built again")
		}
	}
	tester.known = true
	if err := tried.Run(feature.Trial{}); err != nil {
		t.Errorf("a known result: %v", err)
	}
}

// TestSlowTrialsWait: trials that could not be made take a small part of the time.
func TestSlowTrialsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tester := &fakeTester{takes: 20 * time.Second, answer: &feature.UntestedError{Err: errors.New("host not found")}}
		tried := New(tester, slog.New(slog.DiscardHandler))
		for range 3 {
			tried.Begin(InTurn)
			_ = tried.Run(feature.Trial{})
			tried.Built(unit.GlobalsKey, "")
			began := time.Now()
			<-tried.again.Due
			tried.again.Due = nil
			if waited := time.Since(began); waited < 5*time.Minute || waited > 10*time.Minute {
				t.Errorf("the next trial is after %v", waited)
			}
		}
	})
}

// TestTester: only a process that rejects a configuration has tested it.
func TestTester(t *testing.T) {
	of := feature.Trial{Lines: func(string) ([]string, []string) { return nil, []string{"nonsense"} }}
	found, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := found
	gone.Binary = t.TempDir() + "/gone"
	for _, c := range []struct {
		capabilities nginx.Capabilities
		untested     bool
	}{{found, false}, {gone, true}} {
		tester := TestBy(nginx.New(nginx.Options{Capabilities: c.capabilities}))
		untested := (*feature.UntestedError)(nil)
		if err := tester.Try(t.Context(), of); err == nil || errors.As(err, &untested) != c.untested {
			t.Errorf("%s: %v", c.capabilities.Binary, err)
		}
		if _, known := tester.Tried(of); known == c.untested {
			t.Errorf("%s: known: %v", c.capabilities.Binary, known)
		}
	}
}
