// Command testsummary reads the output of `go test -json` and shows each
// package's result, the output of what failed or was skipped, the attributes
// that tests have set, and last, alone on a line, "N passed, N failed, N
// skipped". It exits 1 if something failed, or, with CI=true in the
// environment, if something was skipped.
//
// A test with subtests counts by its subtests, and by itself if it failed
// though none of them did. A package that failed without a failing test (it
// does not build, timed out, found a race) counts as one failure.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	s := newSummary(os.Stdout)
	flag.IntVar(&s.passed, "passed", 0, "how many other checks passed")
	flag.IntVar(&s.failed, "failed", 0, "how many other checks failed")
	flag.Parse()
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		s.failed++
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	if s.failed > 0 || s.passed == 0 || s.skipped > 0 && os.Getenv("CI") == "true" {
		os.Exit(1)
	}
}

// An event is one line of `go test -json`, as described by `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Key, Value                                             string // of an attribute
	Elapsed                                                float64
}

// A test is a package and a test's name, which is empty for the package.
type test struct{ pkg, name string }

// A summary counts events and shows what one wants to see of them.
type summary struct {
	to                      io.Writer
	passed, failed, skipped int
	output                  map[test][]string
	// counted are the tests with a counted subtest, and the packages with a
	// counted test, by the action that was counted.
	counted map[string]map[test]bool
}

func newSummary(to io.Writer) *summary {
	return &summary{to: to, output: map[test][]string{}, counted: map[string]map[test]bool{"pass": {}, "fail": {}, "skip": {}}}
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
	subject := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		// Errors of a build come before the package's own events.
		s.output[test{pkg: e.ImportPath}] = append(s.output[test{pkg: e.ImportPath}], e.Output)
	case "output":
		s.output[subject] = append(s.output[subject], e.Output)
	case "attr":
		fmt.Fprintf(s.to, "      %s %s: %s\n", e.Test, e.Key, e.Value)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e, subject)
		} else {
			s.endTest(e, subject)
		}
		delete(s.output, subject)
	}
}

func (s *summary) endTest(e event, subject test) {
	if e.Action != "pass" {
		s.show(subject)
	}
	parent := s.counted["pass"][subject] || s.counted["skip"][subject]
	if s.counted["fail"][subject] || parent && e.Action != "fail" {
		return
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
	case "skip":
		s.skipped++
	}
	for above := subject; above.name != ""; {
		above.name = parentName(above.name)
		s.counted[e.Action][above] = true
	}
}

func (s *summary) endPackage(e event, subject test) {
	switch {
	case e.Action == "pass":
		fmt.Fprintf(s.to, "ok    %s (%.1fs)\n", e.Package, e.Elapsed)
	case e.Action == "fail":
		fmt.Fprintf(s.to, "FAIL  %s (%.1fs)\n", e.Package, e.Elapsed)
		if e.FailedBuild != e.Package {
			s.show(test{pkg: e.FailedBuild})
		}
		s.show(subject)
		if !s.counted["fail"][subject] {
			s.failed++
		}
	}
}

func (s *summary) show(subject test) {
	for _, line := range s.output[subject] {
		fmt.Fprint(s.to, "      ", line)
	}
}

// parentName is the name of the test that a subtest belongs to, and empty for
// a test that is no subtest.
func parentName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}
