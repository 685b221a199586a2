// Command testsummary runs tests and summarizes them. Its arguments, after
// "--", are those of `go test`: flags in the form -name=value, and packages.
// After another "--" come those of a second run of `go test`, of other packages,
// and so on.
//
// It shows each package's result, the output of what failed or was skipped, and
// the attributes that tests have set. Each test that failed is run once more,
// alone, after all others have ended; one that passes then is flaky and does not
// fail the run. At the end it lists the slowest tests and the flaky ones, and
// prints last, alone on a line, "N passed, N failed, N skipped". It exits 1 if
// something failed, or, with CI=true in the environment, if something was
// skipped.
//
// A test with subtests counts by its subtests, and by itself if it failed
// though none of them did. A package that failed without a failing test (it
// does not build, timed out, found a race) counts as one failure.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	var o options
	begun := time.Now()
	flag.IntVar(&o.passed, "passed", 0, "how many other checks passed")
	flag.IntVar(&o.failed, "failed", 0, "how many other checks failed")
	flag.DurationVar(&o.spent, "spent", 0, "how long the other checks took")
	flag.IntVar(&o.slowest, "slowest", 20, "how many of the slowest tests to list")
	flag.StringVar(&o.flaky, "flaky", "", "a file of flaky tests: lists what is in it as well, and writes back all that were flaky")
	flag.Parse()
	o.ci = os.Getenv("CI") == "true"
	ok := summarize(os.Stdout, goTest, runsOf(flag.Args()), o, func() time.Duration { return time.Since(begun) })
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	passed, failed int
	spent          time.Duration
	slowest        int
	flaky          string
	ci             bool
}

// runsOf are the arguments of each run.
func runsOf(arguments []string) [][]string {
	runs := [][]string{nil}
	for _, a := range arguments {
		if last := len(runs) - 1; a == "--" {
			runs = append(runs, nil)
		} else {
			runs[last] = append(runs[last], a)
		}
	}
	return runs
}

// summarize runs tests and reports whether the whole run is good.
func summarize(to io.Writer, run runner, runs [][]string, o options, took func() time.Duration) bool {
	s := newSummary(to)
	for _, arguments := range runs {
		s.arguments = arguments
		if err := run(s, arguments); err != nil {
			fmt.Fprintln(to, "testsummary:", err)
			o.failed++
		}
	}
	s.runAgain(run)
	s.printSlowest(o.slowest)
	if err := s.printFlaky(o.flaky); err != nil {
		fmt.Fprintln(to, "testsummary:", err)
		o.failed++
	}
	passed, failed, skipped := s.count()
	passed, failed = passed+o.passed, failed+o.failed
	fmt.Fprintf(to, "total %v\n", (o.spent + took()).Round(time.Second))
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed == 0 && passed > 0 && (skipped == 0 || !o.ci)
}
