package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/nginx"
)

// TestTrials: a host is built again until its trials could be made, and their time is its own.
func TestTrials(t *testing.T) {
	var answer error
	tried := &trials{try: func(feature.Trial) error {
		time.Sleep(time.Millisecond)
		return answer
	}}
	for _, c := range []struct {
		answer error
		again  bool
	}{{nil, false}, {errors.New("no space left"), true}, {errors.New("no space left"), true}, {&nginx.ConfError{Reason: "wrong"}, false}} {
		answer = c.answer
		if err := tried.run(feature.Trial{}); !errors.Is(err, c.answer) {
			t.Errorf("%v: %v", c.answer, err)
		}
		if took := tried.built("a.test", "shop"); took < time.Millisecond {
			t.Errorf("%v: the trial took %v", c.answer, took)
		}
		if again := tried.again.due != nil && tried.untried["a.test"] == "shop"; again != c.again {
			t.Errorf("%v: another trial: %v", c.answer, again)
		}
		if took := tried.built("b.test", "shop"); took != 0 {
			t.Errorf("a host without trials took %v", took)
		}
		if again := tried.again.due != nil; again != c.again {
			t.Errorf("%v: another trial after another host: %v", c.answer, again)
		}
	}
}
