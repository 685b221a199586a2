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
)

// maxAgain bounds how many tests are run again: where more fail, something is
// broken, and running them again would only take time.
const maxAgain = 10

// A runner runs `go test` with arguments, and gives its events to a summary. An
// error is a failure that the events don't show.
type runner func(s *summary, arguments []string) error

func goTest(s *summary, arguments []string) error {
	command := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	_, before, _ := s.count()
	readErr := s.read(output)
	err = command.Wait()
	if _, failed, _ := s.count(); failed > before {
		err = nil
	}
	return errors.Join(readErr, err)
}

// runAgain runs each test that failed once more, alone. A package that ended
// before its tests had is run again as a whole, since nothing is known of the
// tests that it did not come to.
func (s *summary) runAgain(run runner) {
	failed := s.failures()
	if len(failed) > maxAgain {
		fmt.Fprintf(s.to, "more than %d tests failed: none is run again\n", maxAgain)
		return
	}
	for _, t := range failed {
		fmt.Fprintf(s.to, "again %s, alone\n", t)
		again := newSummary(s.to)
		if err := run(again, argumentsFor(t, s.packages[t.pkg].arguments)); err != nil {
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
	for pkg, o := range s.packages {
		if o.action == "pass" || o.action == "skip" || o.notBuilt {
			continue
		}
		var tests []test
		for name, action := range o.tests {
			if parentName(name) == "" && action == "fail" {
				tests = append(tests, test{pkg, name})
			}
		}
		if !o.finished || len(tests) == 0 {
			tests = []test{{pkg: pkg}}
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
	second := again.packages[t.pkg]
	if second == nil || second.action != "pass" || t.name != "" && second.tests[t.name] != "pass" {
		return
	}
	s.flaky = append(s.flaky, t)
	if t.name == "" {
		s.packages[t.pkg] = second
		return
	}
	first := s.packages[t.pkg]
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

// printFlaky lists the tests that failed once, and those that are in the file,
// and leaves all of them in that.
func (s *summary) printFlaky(file string) error {
	var lines []string
	if file != "" {
		earlier, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		lines = strings.FieldsFunc(string(earlier), func(r rune) bool { return r == '\n' })
	}
	for _, t := range s.flaky {
		lines = append(lines, t.String())
	}
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(s.to, "flaky: failed, and passed when run again alone:")
	for _, line := range lines {
		fmt.Fprintln(s.to, "       ", line)
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
