package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// An event is one line of `go test -json`, as described by `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Key, Value                                             string // of an attribute
	Elapsed                                                float64
}

// A test is a package of a run and a test's name, which is empty for the package.
type test struct{ run, pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.run + ": " + t.pkg + " " + t.name) }

// whole is the test's package, as if it were a test.
func (t test) whole() test { return test{run: t.run, pkg: t.pkg} }

// A summary shows events as they come and keeps what the end needs.
type summary struct {
	to       io.Writer
	output   map[test][]string
	packages map[test]*outcome
	flaky    []test
	// run is the one whose events come.
	run run
	// stages are those that ended, and that of run as the last one.
	stages []*stage
	// errors are the failures of runs themselves.
	errors int
}

// An outcome is what became of a package.
type outcome struct {
	run run
	// action is the package's: pass, fail, skip, or empty if it has not ended.
	action string
	// notBuilt is set if the package, or one that it imports, does not compile.
	notBuilt bool
	// finished is set if all tests have ended: a test that panics, exits or takes
	// too long ends the package before that.
	finished bool
	// tests are the actions of tests and subtests that have ended, by name.
	tests   map[string]string
	elapsed map[string]time.Duration
}

func newSummary(to io.Writer) *summary {
	return &summary{to: to, output: map[test][]string{}, packages: map[test]*outcome{}}
}

// runAll runs tests, one run after the other but for those beside others.
func (s *summary) runAll(runs []run, test runner) {
	var beside []func()
	for _, r := range runs {
		if !r.beside {
			s.complain(s.timed(r, test))
			continue
		}
		var shown bytes.Buffer
		one, ended := newSummary(&shown), make(chan struct{})
		go func() {
			defer close(ended)
			one.complain(one.timed(r, test))
		}()
		beside = append(beside, func() {
			<-ended
			_, err := shown.WriteTo(s.to)
			s.complain(err)
			maps.Copy(s.packages, one.packages)
			s.stages = append(s.stages, one.stages...)
			s.errors += one.errors
		})
	}
	for _, wait := range beside {
		wait()
	}
}

func (s *summary) read(from io.Reader) error {
	decoder := json.NewDecoder(from)
	for {
		var e event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the output of go test: %w", err)
		}
		s.take(e)
	}
}

func (s *summary) take(e event) {
	subject := test{s.run.name, e.Package, e.Test}
	switch e.Action {
	case "build-output":
		// Errors of a build come before the package's own events.
		built := test{run: s.run.name, pkg: e.ImportPath}
		s.output[built] = append(s.output[built], e.Output)
	case "output":
		s.output[subject] = append(s.output[subject], e.Output)
		if e.Test == "" && (e.Output == "FAIL\n" || e.Output == "PASS\n") {
			s.of(subject).finished = true
		}
	case "attr":
		if !s.note(e) {
			fmt.Fprintf(s.to, "      %s %s: %s\n", e.Test, e.Key, e.Value)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e, subject)
		} else {
			s.endTest(e, subject)
		}
		delete(s.output, subject)
	}
}

// of is the outcome of a test's package.
func (s *summary) of(t test) *outcome {
	o := s.packages[t.whole()]
	if o == nil {
		o = &outcome{run: s.run, tests: map[string]string{}, elapsed: map[string]time.Duration{}}
		s.packages[t.whole()] = o
	}
	return o
}

func (s *summary) endTest(e event, subject test) {
	if e.Action == "fail" || e.Action == "skip" && !s.run.short() {
		s.show(subject)
	}
	o := s.of(subject)
	o.tests[e.Test] = e.Action
	o.elapsed[e.Test] = time.Duration(e.Elapsed * float64(time.Second))
}

func (s *summary) endPackage(e event, subject test) {
	o := s.of(subject)
	o.action, o.notBuilt = e.Action, e.FailedBuild != ""
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.to, "ok    %s (%.1fs)\n", e.Package, e.Elapsed)
	case "fail":
		fmt.Fprintf(s.to, "FAIL  %s (%.1fs)\n", e.Package, e.Elapsed)
		if e.FailedBuild != e.Package {
			s.show(test{run: s.run.name, pkg: e.FailedBuild})
		}
		s.show(subject)
	}
}

func (s *summary) show(subject test) {
	for _, line := range s.output[subject] {
		fmt.Fprint(s.to, "      ", line)
	}
}

// count is how many tests, and checks other than tests, passed, failed and were skipped.
func (s *summary) count() (passed, failed, skipped int) {
	failed = s.errors
	for _, st := range s.stages {
		switch {
		case st.isTest || st.flaky:
		case st.failed:
			failed++
		default:
			passed++
		}
	}
	for _, o := range s.packages {
		actions := o.counted()
		for _, action := range actions {
			switch action {
			case "pass":
				passed++
			case "fail":
				failed++
			case "skip":
				if !o.run.short() {
					skipped++
				}
			}
		}
		// A package that has not ended was cut off.
		if o.action == "fail" || o.action == "" {
			if !slices.Contains(actions, "fail") {
				failed++
			}
		}
	}
	return passed, failed, skipped
}

// counted are the actions of the tests that count: those without subtests, and
// those that failed though none of their subtests did.
func (o *outcome) counted() []string {
	below, failedBelow := map[string]bool{}, map[string]bool{}
	for name, action := range o.tests {
		for above := parentName(name); above != ""; above = parentName(above) {
			below[above] = true
			failedBelow[above] = failedBelow[above] || action == "fail"
		}
	}
	var actions []string
	for name, action := range o.tests {
		if !below[name] || action == "fail" && !failedBelow[name] {
			actions = append(actions, action)
		}
	}
	return actions
}

// parentName is the name of the test that a subtest belongs to, and empty for
// a test that is not a subtest.
func parentName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// printSlowest lists the tests, not their subtests, that took longest.
func (s *summary) printSlowest(most int) {
	type timed struct {
		test
		took time.Duration
	}
	var all []timed
	for of, o := range s.packages {
		for name, took := range o.elapsed {
			if parentName(name) == "" {
				all = append(all, timed{test{of.run, of.pkg, name}, took})
			}
		}
	}
	slices.SortFunc(all, func(a, b timed) int {
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.String(), b.String()))
	})
	all = all[:min(most, len(all))]
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(s.to, "the %d slowest tests:\n", len(all))
	for _, t := range all {
		fmt.Fprintf(s.to, "%7.1fs %s\n", t.took.Seconds(), t)
	}
}

// printTests lists all tests that count, with what became of them.
func (s *summary) printTests() {
	var lines []string
	for of, o := range s.packages {
		for name, action := range o.tests {
			lines = append(lines, fmt.Sprintf("%-4s %s", action, test{of.run, of.pkg, name}))
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(a[4:], b[4:]) })
	for _, line := range lines {
		fmt.Fprintln(s.to, line)
	}
}
