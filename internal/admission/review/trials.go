package review

import (
	"context"
	"errors"

	"github.com/headgate/headgate/internal/feature"
)

// maxTrials is how many tests of directives one review waits for.
const maxTrials = 10

// trials are the tests of directives that reviews need. They are collected while the objects
// are locked, and made afterwards: each takes up to some tenths of a second, and tenants decide
// how many there are.
type trials struct {
	tester feature.Tester
	// untried are those that the current review needs.
	untried []feature.Trial
	// place is for one test at a time.
	place chan struct{}
}

var errUntried = &feature.UntestedError{Err: errors.New("NGINX has no time for it now")}

// ask is the result of a test that was made before.
func (t *trials) ask(of feature.Trial) error {
	if result, known := t.tester.Tried(of); known {
		return result
	}
	t.untried = append(t.untried, of)
	return errUntried
}

// take takes what was asked for in vain.
func (t *trials) take() []feature.Trial {
	list := t.untried
	t.untried = nil
	return list
}

// run makes tests until one can't be made, and returns how many it made.
func (t *trials) run(ctx context.Context, list []feature.Trial, most int) (made int) {
	select {
	case t.place <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	defer func() { <-t.place }()
	for _, of := range list {
		if ctx.Err() != nil || made >= most {
			break
		}
		if _, known := t.tester.Tried(of); known {
			continue
		}
		if feature.IsUntested(t.tester.Try(ctx, of)) {
			break
		}
		made++
	}
	return made
}
