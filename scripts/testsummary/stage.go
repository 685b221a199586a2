package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A stage is one line of the table at the end: a check other than a Go test, or a run of
// `go test`.
type stage struct {
	name   string
	failed bool
	// flaky is set for one that failed, and passed when it was run again: that one counts.
	flaky bool
	// isTest is set for runs of `go test`, whose tests count one by one.
	isTest bool
	begun  time.Time
	// wall is how long it took, and cpu what all its processes used.
	wall, cpu time.Duration
	// tools are the parts of cpu that the compiler, the linker and others took.
	tools tools
	// starts are what tests started, by the key of the attribute that says so.
	starts map[string]starts
}

// starts are how often something was started, and how long that took altogether.
type starts struct {
	number int
	took   time.Duration
}

// started are the attributes of tests whose values are the time that a start took.
var started = []string{"nginx", "cluster"}

// readStages reads the stages that ran before. Each is a line with tabs between:
// the name, ok, FAIL or flaky, the second of the epoch at which it began, the seconds that it took,
// of the processor for itself and for the kernel, and the file in which [runTool] noted its tools.
func readStages(file string) ([]*stage, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var stages []*stage
	for line := range strings.Lines(string(text)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(field) != 7 {
			return nil, fmt.Errorf("%s: %q is not a stage", file, line)
		}
		var seconds [4]time.Duration
		for i := range seconds {
			number, err := strconv.ParseFloat(field[2+i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			seconds[i] = time.Duration(number * float64(time.Second))
		}
		s := &stage{name: field[0], failed: field[1] == "FAIL", flaky: field[1] == "flaky", begun: time.Unix(0, int64(seconds[0])), wall: seconds[1], cpu: seconds[2] + seconds[3]}
		if s.tools, err = readTools(field[6]); err != nil {
			return nil, err
		}
		stages = append(stages, s)
	}
	return stages, nil
}

// timed runs tests as a stage.
func (s *summary) timed(r run, test runner) error {
	s.run = r
	st := &stage{name: r.name, isTest: true, begun: time.Now(), starts: map[string]starts{}}
	s.stages = append(s.stages, st)
	log, err := os.CreateTemp("", "testsummary-")
	if err != nil {
		return err
	}
	log.Close()
	defer os.Remove(log.Name())
	cpu, err := test(s, r.arguments, toolLog+"="+log.Name())
	st.wall, st.cpu = time.Since(st.begun), cpu
	tools, readErr := readTools(log.Name())
	st.tools = tools
	return errors.Join(err, readErr)
}

// note counts an attribute of a test, and reports whether it is the start of something.
func (s *summary) note(e event) bool {
	for _, key := range started {
		took, err := time.ParseDuration(e.Value)
		if e.Key != key || err != nil || len(s.stages) == 0 {
			continue
		}
		st := s.stages[len(s.stages)-1]
		st.starts[key] = starts{st.starts[key].number + 1, st.starts[key].took + took}
		return true
	}
	return false
}

// printStages says where the time went.
func (s *summary) printStages(title string, budget time.Duration) {
	if len(s.stages) == 0 {
		return
	}
	fmt.Fprintf(s.to, "where the time of %s went, in seconds; the processor's by what used it:\n", title)
	const row = "%-22s %7s %7s %8s %7s %7s %7s %15s %15s\n"
	fmt.Fprintf(s.to, row, "", "took", "used", "compile", "link", "vet", "rest", "NGINX started", "clusters")
	var sum stage
	first, last := s.stages[0].begun, time.Time{}
	for _, st := range s.stages {
		fmt.Fprintf(s.to, row, st.cells()...)
		sum.cpu, sum.tools = sum.cpu+st.cpu, sum.tools.plus(st.tools)
		sum.starts = plus(sum.starts, st.starts)
		if st.begun.Before(first) {
			first = st.begun
		}
		if end := st.begun.Add(st.wall); end.After(last) {
			last = end
		}
	}
	// Stages overlap, so that this is not the sum of what they took.
	sum.name, sum.wall = "together", last.Sub(first)
	fmt.Fprintf(s.to, row, sum.cells()...)
	fmt.Fprintf(s.to, "total %v\n", sum.wall.Round(time.Second))
	if budget == 0 {
		return
	}
	verdict := "within it"
	if sum.wall > budget {
		verdict = fmt.Sprintf("%v over it", (sum.wall - budget).Round(time.Second))
	}
	fmt.Fprintf(s.to, "the budget of %s is %v: %s\n", title, budget, verdict)
}

func (st *stage) cells() []any {
	begun := func(key string) string {
		of := st.starts[key]
		if of.number == 0 {
			return ""
		}
		return fmt.Sprintf("%d in %s", of.number, seconds(of.took))
	}
	t := st.tools
	return []any{
		st.name, seconds(st.wall), seconds(st.cpu), seconds(t.compile), seconds(t.link), seconds(t.vet),
		seconds(max(0, st.cpu-t.compile-t.link-t.vet)), begun("nginx"), begun("cluster"),
	}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }

func plus(a, b map[string]starts) map[string]starts {
	sum := map[string]starts{}
	for _, of := range []map[string]starts{a, b} {
		for key, value := range of {
			sum[key] = starts{sum[key].number + value.number, sum[key].took + value.took}
		}
	}
	return sum
}

// complain shows an error of the run itself, and counts it as a failure.
func (s *summary) complain(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(s.to, "testsummary:", err)
	s.errors++
}
