// Command testsummary runs tests and summarizes them and the time that they took. Its
// arguments are its own flags and, after each "--", a run: a name with a colon, and the
// arguments of `go test`: flags in the form -name=value, and packages.
//
//	testsummary -title='make test' -stages=FILE -- pure: ./internal/... -- race: -race ./internal/stream
//
// A run whose name ends in "&" goes on beside those that follow it, and what it shows comes
// after theirs.
//
// It shows each package's result, the output of what failed or was skipped, and
// the attributes that tests have set. Each test that failed is run once more,
// alone, after all others have ended, for at most a quarter of the time that those took;
// one that passes then is flaky and does not fail the run.
//
// At the end it lists the slowest tests and the flaky ones, and a table says where the
// time went: a line for each stage of the file (see [readStages]) and for each run. Then come
// the budget and what it compares with, what failed, and last, alone on a line, "N passed, N failed, N
// skipped". It exits 1 if something failed, or, with CI=true in the environment, if
// something was skipped other than by -short. A budget that is exceeded fails nothing, since machines differ.
//
// A test with subtests counts by its subtests, and by itself if it failed
// though none of them did. A package that failed without a failing test (it
// does not build, timed out, found a race) counts as one failure.
//
// As `testsummary tool TOOL ARGUMENTS` it is a -toolexec of the go command: see [runTool].
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(runTool(os.Args[2:], os.Getenv(toolLog)))
	}
	var o options
	flag.StringVar(&o.title, "title", "all tests", "what is run, for the lines at the end")
	flag.StringVar(&o.stages, "stages", "", "a file with the stages that ran before")
	flag.DurationVar(&o.budget, "budget", 0, "how long everything may take; 0 for no budget")
	flag.IntVar(&o.slowest, "slowest", 20, "how many of the slowest tests to list")
	flag.BoolVar(&o.list, "list", false, "list each test with its result")
	flag.Parse()
	o.ci = os.Getenv("CI") == "true"
	runs, err := runsOf(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(2)
	}
	if !summarize(os.Stdout, goTest, runs, o) {
		os.Exit(1)
	}
}

type options struct {
	title, stages string
	budget        time.Duration
	slowest       int
	list, ci      bool
}

// A run is one `go test`.
type run struct {
	name      string
	arguments []string
	// beside is set if the next runs don't wait for it.
	beside bool
}

// short reports whether the run leaves out tests that another run has.
func (r run) short() bool { return slices.Contains(r.arguments, "-short") }

// runsOf are the runs that the arguments name.
func runsOf(arguments []string) ([]run, error) {
	var runs []run
	named := false
	for _, a := range arguments {
		switch {
		case a == "--":
			named = false
		case !named:
			name, ok := strings.CutSuffix(a, ":")
			if !ok {
				return nil, fmt.Errorf("%q is not the name of a run: it must end in a colon", a)
			}
			name, beside := strings.CutSuffix(name, "&")
			runs, named = append(runs, run{name: name, beside: beside}), true
		default:
			last := &runs[len(runs)-1]
			last.arguments = append(last.arguments, a)
		}
	}
	return runs, nil
}

// summarize runs tests and reports whether the whole run is good.
func summarize(to io.Writer, test runner, runs []run, o options) bool {
	s := newSummary(to)
	stages, err := readStages(o.stages)
	s.stages = stages
	s.complain(err)
	begun := time.Now()
	s.runAll(runs, test)
	s.runAgain(test, time.Now().Add(max(minAgain, time.Since(begun)/partAgain)))
	if o.list {
		s.printTests()
	}
	s.printSlowest(o.slowest)
	s.printFlaky()
	s.printStages(o.title, o.budget)
	s.printFailed()
	passed, failed, skipped := s.count()
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed == 0 && passed > 0 && (skipped == 0 || !o.ci)
}
