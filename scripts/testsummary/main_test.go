package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

const first = `
{"ImportPath":"broken","Action":"build-output","Output":"broken.go:1: no\n"}
{"ImportPath":"broken","Action":"build-fail"}
{"Action":"output","Package":"broken","Output":"FAIL broken [build failed]\n"}
{"Action":"fail","Package":"broken","FailedBuild":"broken"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"quiet\n"}
{"Action":"attr","Package":"p","Test":"TestGood","Key":"cases","Value":"3 passed"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":2.5}
{"Action":"pass","Package":"p","Test":"TestParent/one"}
{"Action":"output","Package":"p","Test":"TestParent/two","Output":"two is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestParent/two","Elapsed":90}
{"Action":"fail","Package":"p","Test":"TestParent","Elapsed":91.25}
{"Action":"pass","Package":"p","Test":"TestCleanup/one"}
{"Action":"output","Package":"p","Test":"TestCleanup","Output":"cleanup is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestCleanup"}
{"Action":"pass","Package":"p","Test":"TestDeep/a/b"}
{"Action":"pass","Package":"p","Test":"TestDeep/a"}
{"Action":"pass","Package":"p","Test":"TestDeep"}
{"Action":"output","Package":"p","Test":"TestSkipped","Output":"not here\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"slow","Test":"TestOne"}
{"Action":"output","Package":"slow","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"slow"}
{"Action":"skip","Package":"no tests"}
`

func TestSummary(t *testing.T) {
	var shown strings.Builder
	s := newSummary(&shown)
	s.run.name = "r"
	if err := s.read(strings.NewReader(first)); err != nil {
		t.Fatal(err)
	}
	// Passed: TestGood, one of TestParent, one of TestCleanup, b of TestDeep, one
	// of slow. Failed: broken, two of TestParent, TestCleanup itself, slow.
	if passed, failed, skipped := s.count(); passed != 5 || failed != 4 || skipped != 1 {
		t.Errorf("got %d passed, %d failed, %d skipped; want 5, 4, 1", passed, failed, skipped)
	}
	s.printSlowest(2)
	for _, want := range []string{
		"broken.go:1: no", "two is wrong", "cleanup is wrong", "not here", "timed out", "TestGood cases: 3 passed\n",
		"the 2 slowest tests:\n   91.2s r: p TestParent\n    2.5s r: p TestGood\n",
	} {
		if strings.Count(shown.String(), want) != 1 {
			t.Errorf("want %q once in:\n%s", want, &shown)
		}
	}
	if strings.Contains(shown.String(), "quiet") {
		t.Errorf("shows the output of a test that passed:\n%s", &shown)
	}
}

func TestSummaryRefusesOtherText(t *testing.T) {
	if err := newSummary(&strings.Builder{}).read(strings.NewReader("go: cannot find main module\n")); err == nil {
		t.Error("no error")
	}
}

// TestAgain: what failed is run again, alone, and only what passes then is
// forgiven.
func TestAgain(t *testing.T) {
	second := map[string]string{
		"-race -run=^TestParent$ p": `
{"Action":"pass","Package":"p","Test":"TestParent/one"}
{"Action":"pass","Package":"p","Test":"TestParent/two"}
{"Action":"pass","Package":"p","Test":"TestParent"}
{"Action":"pass","Package":"p"}`,
		// A pass of the package without the test is not one of the test.
		"-race -run=^TestCleanup$ p": `{"Action":"pass","Package":"p"}`,
		"-race slow":                 `{"Action":"pass","Package":"slow","Test":"TestOne"} {"Action":"pass","Package":"slow","Test":"TestTwo"} {"Action":"pass","Package":"slow"}`,
	}
	var asked []string
	test := func(s *summary, arguments []string, _ string) (time.Duration, error) {
		asked = append(asked, strings.Join(arguments, " "))
		if len(asked) == 1 {
			return 0, s.read(strings.NewReader(first))
		}
		return 0, s.read(strings.NewReader(second[asked[len(asked)-1]]))
	}
	text, ok := runOnce(t, test, []string{"r:", "-race", "./..."}, options{})
	if ok {
		t.Error("the run is good")
	}
	want := []string{"-race ./...", "-race -run=^TestCleanup$ p", "-race -run=^TestParent$ p", "-race slow"}
	if !slices.Equal(asked, want) {
		t.Errorf("ran %q, want %q", asked, want)
	}
	for _, want := range []string{"alone:\n        r: p TestParent\n        r: slow\n", "\n7 passed, 2 failed, 1 skipped\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

// A machine that stalls fails many tests at once.
func TestManyFailuresAreRunAgain(t *testing.T) {
	const tests = 50
	runs := 0
	text, ok := runOnce(t, func(s *summary, arguments []string, _ string) (time.Duration, error) {
		runs++
		for i := range tests {
			name := fmt.Sprintf("Test%d", i)
			switch {
			case runs == 1:
				s.take(event{Action: "fail", Package: "p", Test: name})
			case slices.Contains(arguments, "-run=^"+name+"$"):
				s.take(event{Action: "pass", Package: "p", Test: name})
			}
		}
		outcome := "pass"
		if runs == 1 {
			outcome = "fail"
			s.take(event{Action: "output", Package: "p", Output: "FAIL\n"})
		}
		s.take(event{Action: outcome, Package: "p"})
		return 0, nil
	}, []string{"r:"}, options{})
	if !ok || runs != 1+tests || !strings.Contains(text, "\n50 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%d runs:\n%s", runs, text)
	}
}

func TestTimeToRunAgain(t *testing.T) {
	var shown strings.Builder
	s := newSummary(&shown)
	s.run.name = "r"
	if err := s.read(strings.NewReader(first)); err != nil {
		t.Fatal(err)
	}
	s.runAgain(func(*summary, []string, string) (time.Duration, error) {
		t.Error("a test is run again")
		return 0, nil
	}, time.Now().Add(-time.Second))
	s.printFailed()
	for _, want := range []string{"no time is left to run 3 failed tests again\n", "failed:\n        r: p TestCleanup\n        r: p TestParent\n        r: slow\n"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("want %q in:\n%s", want, &shown)
		}
	}
}

func TestResult(t *testing.T) {
	stages := filepath.Join(t.TempDir(), "stages")
	write(t, stages, "lint\tok\t0\t1\t1\t1\t\nsite\tFAIL\t0\t1\t1\t1\t\n")
	again := filepath.Join(t.TempDir(), "again")
	write(t, again, "site\tflaky\t0\t1\t1\t1\t\nsite, again\tok\t0\t1\t1\t1\t\n")
	for _, c := range []struct {
		name    string
		actions []string
		err     error
		options options
		// arguments is a flag of the run.
		arguments string
		ok        bool
		want      string
	}{
		{name: "passed", actions: []string{"pass"}, ok: true, want: "1 passed, 0 failed, 0 skipped"},
		{name: "skipped", actions: []string{"pass", "skip"}, ok: true, want: "1 passed, 0 failed, 1 skipped"},
		{name: "skipped in CI", actions: []string{"pass", "skip"}, options: options{ci: true}, want: "1 passed, 0 failed, 1 skipped"},
		{name: "left out in CI", actions: []string{"pass", "skip"}, options: options{ci: true}, arguments: "-short", ok: true, want: "1 passed, 0 failed, 0 skipped"},
		{name: "none", want: "0 passed, 0 failed, 0 skipped"},
		{name: "go test failed", actions: []string{"pass"}, err: errors.New("no module"), want: "1 passed, 1 failed, 0 skipped"},
		{name: "a stage failed", actions: []string{"pass"}, options: options{stages: stages}, want: "failed:\n        site\n2 passed, 1 failed, 0 skipped"},
		{name: "a stage passed when run again", actions: []string{"pass"}, options: options{stages: again}, ok: true, want: "2 passed, 0 failed, 0 skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, ok := runOnce(t, func(s *summary, _ []string, _ string) (time.Duration, error) {
				for i, action := range c.actions {
					s.take(event{Action: action, Package: "p", Test: fmt.Sprintf("Test%d", i)})
				}
				if len(c.actions) > 0 {
					s.take(event{Action: "pass", Package: "p"})
				}
				return 0, c.err
			}, append([]string{"r:"}, strings.Fields(c.arguments)...), c.options)
			if ok != c.ok || !strings.HasSuffix(text, "\n"+c.want+"\n") {
				t.Errorf("good: %v\n%s", ok, text)
			}
		})
	}
}

// TestRuns: a test that failed is run again with the flags of its own run, and counts in each
// of its runs.
func TestRuns(t *testing.T) {
	var asked []string
	text, ok := runOnce(t, func(s *summary, arguments []string, _ string) (time.Duration, error) {
		asked = append(asked, strings.Join(arguments, " "))
		action := "pass"
		if len(asked) == 2 {
			action = "fail"
		}
		pkg := "p"
		s.take(event{Action: action, Package: pkg, Test: "TestA"})
		s.take(event{Action: "output", Package: pkg, Output: "FAIL\n"})
		s.take(event{Action: action, Package: pkg})
		return 0, nil
	}, []string{"one:", "-race", "p", "--", "two:", "-count=1", "p"}, options{})
	want := []string{"-race p", "-count=1 p", "-count=1 -run=^TestA$ p"}
	if !ok || !slices.Equal(asked, want) || !strings.HasSuffix(text, "\n2 passed, 0 failed, 0 skipped\n") {
		t.Errorf("ran %q, want %q; good: %v\n%s", asked, want, ok, text)
	}
}

// TestBeside: a run may go on beside the next one, and counts as the others do.
func TestBeside(t *testing.T) {
	ended, again := make(chan struct{}), false
	text, ok := runOnce(t, func(s *summary, arguments []string, _ string) (time.Duration, error) {
		action := "pass"
		switch pkg := arguments[len(arguments)-1]; {
		case pkg == "quick":
			close(ended)
		case !again:
			<-ended
			again, action = true, "fail"
		}
		for _, test := range []string{"TestA", ""} {
			s.take(event{Action: action, Package: arguments[len(arguments)-1], Test: test})
		}
		return 0, nil
	}, []string{"slow&:", "slow", "--", "fast:", "quick"}, options{})
	quick, slow := strings.Index(text, "ok    quick"), strings.Index(text, "FAIL  slow")
	if !ok || quick < 0 || slow < quick || !strings.Contains(text, "again slow: slow") || !strings.HasSuffix(text, "\n2 passed, 0 failed, 0 skipped\n") {
		t.Errorf("good: %v\n%s", ok, text)
	}
}

// TestWhereTimeGoes: the table has stages, runs, tools and starts.
func TestWhereTimeGoes(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "stages"), filepath.Join(dir, "tools")
	now := time.Now().Unix() - 100
	write(t, file, fmt.Sprintf("lint\tok\t%d\t10.5\t6.25\t0.75\t%s\nsite\tFAIL\t%d\t2\t1\t0\t%s\n", now, log, now+5, log+"none"))
	write(t, log, "compile 3000000000\nlink 1000000000\nvet 500000000\nasm 250000000\n")
	test := func(s *summary, arguments []string, variable string) (time.Duration, error) {
		write(t, strings.TrimPrefix(variable, toolLog+"="), "link 2000000000\n")
		return 9 * time.Second, s.read(strings.NewReader(`
{"Action":"attr","Package":"p","Test":"TestA","Key":"nginx","Value":"1.5s"}
{"Action":"attr","Package":"p","Test":"TestA","Key":"nginx","Value":"0.5s"}
{"Action":"attr","Package":"p","Test":"TestA","Key":"cluster","Value":"20s"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`))
	}
	text, ok := runOnce(t, test, []string{"features:", "p"}, options{title: "make test", stages: file, budget: time.Minute})
	if ok || !strings.HasSuffix(text, "\n2 passed, 1 failed, 0 skipped\n") {
		t.Errorf("good: %v", ok)
	}
	var table []string
	for line := range strings.Lines(text) {
		table = append(table, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"lint 10.5 7.0 3.2 1.0 0.5 2.2", "site 2.0 1.0 0.0 0.0 0.0 1.0", "features 0.0 9.0 0.0 2.0 0.0 7.0 2 in 2.0 1 in 20.0",
	} {
		if !slices.Contains(table, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	// How far over depends on how slow the machine is.
	if over := regexp.MustCompile(`(?m)^the budget of make test is 1m0s: [\dms]+ over it$`); !over.MatchString(text) {
		t.Errorf("want %q in:\n%s", over, text)
	}
	if strings.Contains(text, "TestA nginx") {
		t.Errorf("shows a start as a result:\n%s", text)
	}
	for _, wrong := range []string{"lint\tok\n", "lint\tok\tx\t1\t1\t1\t\n"} {
		write(t, file, wrong)
		if _, err := readStages(file); err == nil {
			t.Errorf("reads %q", wrong)
		}
	}
}

// TestTool: what the go command builds through the program is noted.
func TestTool(t *testing.T) {
	log := filepath.Join(t.TempDir(), "tools")
	if code := runTool([]string{"sh", "-c", "exit 3"}, log); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if code := runTool([]string{filepath.Join(t.TempDir(), "missing")}, log); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	text, err := os.ReadFile(log)
	if err != nil || !strings.HasPrefix(string(text), "sh ") {
		t.Errorf("noted %q, %v", text, err)
	}
	write(t, log, "link soon\n")
	if _, err := readTools(log); err == nil {
		t.Error("reads a time that is none")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGoTest runs real tests.
func TestGoTest(t *testing.T) {
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(module)).Files {
		path := filepath.Join(dir, f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	text, ok := runOnce(t, goTest, []string{"all:", "-count=1", "-timeout=1m", "./..."}, options{})
	if ok {
		t.Error("the run is good")
	}
	for _, want := range []string{
		"alone:\n        all: m/once/crash\n        all: m/once/exit\n        all: m/once/fail TestSometimes\n",
		"again all: m/twice/fail TestNever, alone\n", "again all: m/twice/crash, alone\n", "never is wrong\n",
		"\n8 passed, 3 failed, 0 skipped\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "again all: m/broken") || strings.Contains(text, "TestAlways, alone") {
		t.Errorf("runs again what did not fail, or can't pass:\n%s", text)
	}
	t.Run("no module", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if text, ok := runOnce(t, goTest, []string{"all:", "./..."}, options{}); ok || !strings.HasSuffix(text, "\n0 passed, 1 failed, 0 skipped\n") {
			t.Errorf("good: %v\n%s", ok, text)
		}
	})
}

// module has packages that fail once or always.
const module = `
-- go.mod --
module m

go 1.24
-- once/once.go --
package once

import "os"

// First reports whether it is called for the first time with name.
func First(name string) bool {
	file, err := os.OpenFile("../../"+name, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}
-- once/fail/fail_test.go --
package fail

import (
	"m/once"
	"testing"
)

func TestAlways(*testing.T) {}

func TestSometimes(t *testing.T) {
	t.Run("good", func(*testing.T) {})
	t.Run("a/b c", func(t *testing.T) {
		if once.First("fail") {
			t.Error("once")
		}
	})
}
-- once/crash/crash_test.go --
package crash

import (
	"m/once"
	"testing"
)

func TestCrash(*testing.T) {
	if once.First("crash") {
		panic("once")
	}
}

func TestBehind(*testing.T) {}
-- once/exit/exit_test.go --
package exit

import (
	"m/once"
	"os"
	"testing"
)

func TestBefore(*testing.T) {}

func TestExit(*testing.T) {
	if once.First("exit") {
		os.Exit(3)
	}
}
-- twice/fail/fail_test.go --
package fail

import "testing"

func TestAlways(*testing.T) {}

func TestNever(t *testing.T) { t.Error("never is wrong") }
-- twice/crash/crash_test.go --
package crash

import "testing"

func TestCrash(*testing.T) { panic("always") }
-- broken/broken_test.go --
package broken

var x int = "no"
`

// runOnce is one invocation of the program.
func runOnce(t *testing.T, test runner, arguments []string, o options) (string, bool) {
	t.Helper()
	runs, err := runsOf(arguments)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	ok := summarize(&shown, test, runs, o)
	return shown.String(), ok
}
