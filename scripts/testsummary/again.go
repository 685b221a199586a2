package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Tests are run again for a part of the time that all have taken, at least for minAgain.
// A machine that stalls fails dozens of tests at once, which pass again in that time. Where
// it is up before, something is broken.
const (
	partAgain = 4
	minAgain  = time.Minute
)

// A runner runs `go test` with arguments and one more variable in its environment, and
// gives its events to a summary. It returns the processor's time that was used. An error is
// a failure that the events don't show.
type runner func(s *summary, arguments []string, variable string) (time.Duration, error)

func goTest(s *summary, arguments []string, variable string) (time.Duration, error) {
	command := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	command.Env = append(os.Environ(), variable)
	if slices.Contains(arguments, "-race") {
		command.Env = append(command.Env, "CGO_ENABLED=1")
	}
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	_, before, _ := s.count()
	readErr := s.read(output)
	err = command.Wait()
	if _, failed, _ := s.count(); failed > before {
		err = nil
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), errors.Join(readErr, err)
}

// runAgain runs each test that failed once more, alone, until the deadline. A package
// that ended before its tests had is run again as a whole, since nothing is known of
// the tests that it did not come to.
func (s *summary) runAgain(test runner, deadline time.Time) {
	failed := s.failures()
	for i, t := range failed {
		if time.Now().After(deadline) {
			fmt.Fprintf(s.to, "no time is left to run %d failed tests again\n", len(failed)-i)
			return
		}
		fmt.Fprintf(s.to, "again %s, alone\n", t)
		again := newSummary(s.to)
		of := s.packages[t.whole()].run
		err := again.timed(run{name: of.name, arguments: argumentsFor(t, of.arguments)}, test)
		again.stages[0].name += ", again"
		s.stages = append(s.stages, again.stages[0])
		if err != nil {
			fmt.Fprintln(s.to, "testsummary:", err)
			continue
		}
		s.merge(t, again)
	}
}

// failures are the tests, without their subtests, that are to be run again. A
// subtest may need what those before it have done.
func (s *summary) failures() []test {
	var failed []test
	for of, o := range s.packages {
		if o.action == "pass" || o.action == "skip" || o.notBuilt {
			continue
		}
		var tests []test
		for name, action := range o.tests {
			if parentName(name) == "" && action == "fail" {
				tests = append(tests, test{of.run, of.pkg, name})
			}
		}
		if !o.finished || len(tests) == 0 {
			tests = []test{of}
		}
		failed = append(failed, tests...)
	}
	slices.SortFunc(failed, func(a, b test) int { return cmp.Compare(a.String(), b.String()) })
	return failed
}

// argumentsFor are the arguments of `go test` for one test alone.
func argumentsFor(t test, arguments []string) []string {
	var alone []string
	for _, a := range arguments {
		if strings.HasPrefix(a, "-") {
			alone = append(alone, a)
		}
	}
	if t.name != "" {
		alone = append(alone, "-run=^"+regexp.QuoteMeta(t.name)+"$")
	}
	return append(alone, t.pkg)
}

// merge puts the outcome of a test's second run in place of its first.
func (s *summary) merge(t test, again *summary) {
	second := again.packages[t.whole()]
	if second == nil || second.action != "pass" || t.name != "" && second.tests[t.name] != "pass" {
		return
	}
	s.flaky = append(s.flaky, t)
	if t.name == "" {
		s.packages[t.whole()] = second
		return
	}
	first := s.packages[t.whole()]
	for name := range first.tests {
		if name == t.name || strings.HasPrefix(name, t.name+"/") {
			delete(first.tests, name)
		}
	}
	for name, action := range second.tests {
		first.tests[name] = action
	}
	if !slices.Contains(first.counted(), "fail") {
		first.action = "pass"
	}
}

// printFailed lists what failed, since its output may be far above.
func (s *summary) printFailed() {
	s.list("failed:", func(st *stage) bool { return st.failed }, s.failures())
}

// printFlaky lists what failed once.
func (s *summary) printFlaky() {
	s.list("flaky: failed, and passed when run again alone:", func(st *stage) bool { return st.flaky }, s.flaky)
}

// list prints the stages of which is true, and tests, unless there are none.
func (s *summary) list(title string, which func(*stage) bool, tests []test) {
	var names []string
	for _, st := range s.stages {
		if which(st) {
			names = append(names, st.name)
		}
	}
	for _, t := range tests {
		names = append(names, t.String())
	}
	if len(names) > 0 {
		fmt.Fprintf(s.to, "%s\n        %s\n", title, strings.Join(names, "\n        "))
	}
}
