package main

import (
	"context"
	"fmt"
	"time"
)

// A meter has what one kind of load took: one value for each round.
type meter struct {
	// costs are microseconds of CPU by answer, and rates answers by second.
	costs, rates []float64
}

// take measures a load, which returns the number of answers.
func (m *meter) take(used func() (time.Duration, error), load func() (int, error)) error {
	before, err := used()
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := load()
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := used()
	if err != nil {
		return err
	}
	m.costs = append(m.costs, float64((after-before).Nanoseconds())/1000/float64(n))
	m.rates = append(m.rates, float64(n)/took.Seconds())
	return nil
}

// A contender is put under load for a time, in turn with others.
type contender interface {
	fmt.Stringer
	measure(ctx context.Context, during time.Duration) error
}

// inRounds lets all sides take their turns, round by round.
func inRounds[C contender](ctx context.Context, n size, sides []C) error {
	for range n.rounds {
		for _, one := range sides {
			if err := one.measure(ctx, n.load); err != nil {
				return fmt.Errorf("%v: %w", one, err)
			}
		}
	}
	return nil
}
