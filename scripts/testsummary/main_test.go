package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		"the 2 slowest tests:\n   91.2s p TestParent\n    2.5s p TestGood\n",
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
	run := func(s *summary, arguments []string) error {
		asked = append(asked, strings.Join(arguments, " "))
		if len(asked) == 1 {
			return s.read(strings.NewReader(first))
		}
		return s.read(strings.NewReader(second[asked[len(asked)-1]]))
	}
	text, ok := runOnce(t, run, []string{"-race", "./..."}, options{})
	if ok {
		t.Error("the run is good")
	}
	want := []string{"-race ./...", "-race -run=^TestCleanup$ p", "-race -run=^TestParent$ p", "-race slow"}
	if !slices.Equal(asked, want) {
		t.Errorf("ran %q, want %q", asked, want)
	}
	for _, want := range []string{"alone:\n        p TestParent\n        slow\n", "\n7 passed, 2 failed, 1 skipped\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

func TestManyFailuresAreNotRunAgain(t *testing.T) {
	runs := 0
	text, ok := runOnce(t, func(s *summary, _ []string) error {
		runs++
		for i := range maxAgain + 1 {
			s.take(event{Action: "fail", Package: "p", Test: fmt.Sprintf("Test%d", i)})
		}
		s.take(event{Action: "output", Package: "p", Output: "FAIL\n"})
		s.take(event{Action: "fail", Package: "p"})
		return nil
	}, nil, options{})
	if ok || runs != 1 || !strings.Contains(text, "\n0 passed, 11 failed, 0 skipped\n") {
		t.Errorf("%d runs:\n%s", runs, text)
	}
}

func TestResult(t *testing.T) {
	for _, c := range []struct {
		name    string
		actions []string
		err     error
		options options
		ok      bool
		want    string
	}{
		{name: "passed", actions: []string{"pass"}, ok: true, want: "1 passed, 0 failed, 0 skipped"},
		{name: "skipped", actions: []string{"pass", "skip"}, ok: true, want: "1 passed, 0 failed, 1 skipped"},
		{name: "skipped in CI", actions: []string{"pass", "skip"}, options: options{ci: true}, want: "1 passed, 0 failed, 1 skipped"},
		{name: "none", want: "0 passed, 0 failed, 0 skipped"},
		{name: "go test failed", actions: []string{"pass"}, err: errors.New("no module"), want: "1 passed, 1 failed, 0 skipped"},
		{name: "another check failed", actions: []string{"pass"}, options: options{passed: 3, failed: 1}, want: "4 passed, 1 failed, 0 skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, ok := runOnce(t, func(s *summary, _ []string) error {
				for i, action := range c.actions {
					s.take(event{Action: action, Package: "p", Test: fmt.Sprintf("Test%d", i)})
				}
				if len(c.actions) > 0 {
					s.take(event{Action: "pass", Package: "p"})
				}
				return c.err
			}, nil, c.options)
			if ok != c.ok || !strings.HasSuffix(text, "\n"+c.want+"\n") {
				t.Errorf("good: %v\n%s", ok, text)
			}
		})
	}
}

// TestRuns: a test that failed is run again with the flags of its own run.
func TestRuns(t *testing.T) {
	var asked []string
	text, ok := runOnce(t, func(s *summary, arguments []string) error {
		asked = append(asked, strings.Join(arguments, " "))
		action := "pass"
		if len(asked) == 2 {
			action = "fail"
		}
		pkg := arguments[len(arguments)-1]
		s.take(event{Action: action, Package: pkg, Test: "TestA"})
		s.take(event{Action: "output", Package: pkg, Output: "FAIL\n"})
		s.take(event{Action: action, Package: pkg})
		return nil
	}, []string{"-race", "p", "--", "-count=1", "q"}, options{})
	want := []string{"-race p", "-count=1 q", "-count=1 -run=^TestA$ q"}
	if !ok || !slices.Equal(asked, want) || !strings.HasSuffix(text, "\n2 passed, 0 failed, 0 skipped\n") {
		t.Errorf("ran %q, want %q; good: %v\n%s", asked, want, ok, text)
	}
}

// TestOtherFlakyTests: the tests of an earlier run are listed with those of
// this one.
func TestOtherFlakyTests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flaky")
	run := func(s *summary, arguments []string) error {
		action := "pass"
		if len(arguments) == 0 {
			action = "fail"
		}
		s.take(event{Action: action, Package: "p", Test: "TestA"})
		s.take(event{Action: "output", Package: "p", Output: "FAIL\n"})
		s.take(event{Action: action, Package: "p"})
		return nil
	}
	if _, ok := runOnce(t, run, nil, options{flaky: file}); !ok {
		t.Error("a flaky test fails the run")
	}
	text, _ := runOnce(t, run, []string{"good"}, options{flaky: file})
	if !strings.Contains(text, "alone:\n        p TestA\ntotal 1m2s\n") {
		t.Errorf("got:\n%s", text)
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
	text, ok := runOnce(t, goTest, []string{"-count=1", "-timeout=1m", "./..."}, options{})
	if ok {
		t.Error("the run is good")
	}
	for _, want := range []string{
		"alone:\n        m/once/crash\n        m/once/exit\n        m/once/fail TestSometimes\n",
		"again m/twice/fail TestNever, alone\n", "again m/twice/crash, alone\n", "never is wrong\n",
		"\n8 passed, 3 failed, 0 skipped\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "again m/broken") || strings.Contains(text, "TestAlways, alone") {
		t.Errorf("runs again what did not fail, or can't pass:\n%s", text)
	}
	t.Run("no module", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if text, ok := runOnce(t, goTest, []string{"./..."}, options{passed: 1}); ok || !strings.HasSuffix(text, "\n1 passed, 1 failed, 0 skipped\n") {
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

// runOnce is one run, of a minute and two seconds.
func runOnce(t *testing.T, run runner, arguments []string, o options) (string, bool) {
	t.Helper()
	var shown strings.Builder
	o.spent = time.Minute
	ok := summarize(io.Writer(&shown), run, runsOf(arguments), o, func() time.Duration { return 2 * time.Second })
	return shown.String(), ok
}
