package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// measureAgainst compares the worker CPU of two builds of Headgate that take
// turns: what a change costs, on a machine whose speed is not the same twice.
func measureAgainst(ctx context.Context, s *stage, n size, other string) ([]CPURow, error) {
	theirs, err := s.startBuild(ctx, "other", other)
	if err != nil {
		return nil, err
	}
	ours, err := s.startBuild(ctx, "this", s.headgate)
	if err != nil {
		return nil, err
	}
	var rows []comparison
	for _, row := range []struct {
		name, host string
		routing    routing
	}{
		{"default profile, one host", middle, routing{}},
		{"default profile, 1,000 hosts in turn", "", exactRouting},
		{"a profile of its own", profileHost, routing{}},
		{"a wildcard host", fmt.Sprintf(wildcardRouting.asked, hosts/2), wildcardRouting},
		{"a host of regular expressions", fmt.Sprintf(patternRouting.asked, hosts/2), patternRouting},
	} {
		rows = append(rows, comparison{
			name: row.name,
			base: &side{name: "other, " + row.name, instance: theirs.instance, host: row.host, routing: row.routing},
			side: &side{name: "this, " + row.name, instance: ours.instance, host: row.host, routing: row.routing},
		})
	}
	return s.takeTurns(ctx, "two builds", rows, n)
}

// startBuild starts one build of Headgate with hosts of all kinds of routing.
func (s *stage) startBuild(ctx context.Context, name, program string) (*headgate, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	defer func(before string) { s.headgate = before }(s.headgate)
	s.headgate = program
	_, h, err := s.startWithHosts(ctx, name, false, exactRouting, wildcardRouting, patternRouting)
	return h, err
}
