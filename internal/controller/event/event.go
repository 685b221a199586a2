// Package event has functions run by the goroutine of a controller, between two changes.
package event

import "context"

// Events are functions that wait to be run. Post may be called by any goroutine.
type Events struct {
	waiting chan func(context.Context)
	ended   chan struct{}
}

// New has none.
func New() Events { return Events{make(chan func(context.Context)), make(chan struct{})} }

// Post waits until a function is taken to be run, or until End.
func (e Events) Post(do func(context.Context)) {
	select {
	case e.waiting <- do:
	case <-e.ended:
	}
}

// Events are to be run between two changes.
func (e Events) Events() <-chan func(context.Context) { return e.waiting }

// End ends them: what waits is not run any more.
func (e Events) End() { close(e.ended) }
