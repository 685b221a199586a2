package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	const events = `
{"ImportPath":"broken","Action":"build-output","Output":"broken.go:1: no\n"}
{"ImportPath":"broken","Action":"build-fail"}
{"Action":"output","Package":"broken","Output":"FAIL broken [build failed]\n"}
{"Action":"fail","Package":"broken","FailedBuild":"broken"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"quiet\n"}
{"Action":"attr","Package":"p","Test":"TestGood","Key":"cases","Value":"3 passed"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"pass","Package":"p","Test":"TestParent/one"}
{"Action":"output","Package":"p","Test":"TestParent/two","Output":"two is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestParent/two"}
{"Action":"fail","Package":"p","Test":"TestParent"}
{"Action":"pass","Package":"p","Test":"TestCleanup/one"}
{"Action":"output","Package":"p","Test":"TestCleanup","Output":"cleanup is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestCleanup"}
{"Action":"pass","Package":"p","Test":"TestDeep/a/b"}
{"Action":"pass","Package":"p","Test":"TestDeep/a"}
{"Action":"pass","Package":"p","Test":"TestDeep"}
{"Action":"output","Package":"p","Test":"TestSkipped","Output":"not here\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"fail","Package":"p"}
{"Action":"output","Package":"slow","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"slow"}
{"Action":"skip","Package":"no tests"}
`
	var shown strings.Builder
	s := newSummary(&shown)
	if err := s.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	// Passed: TestGood, one of TestParent, one of TestCleanup, b of TestDeep.
	// Failed: broken, two of TestParent, TestCleanup itself, slow.
	if s.passed != 4 || s.failed != 4 || s.skipped != 1 {
		t.Errorf("got %d passed, %d failed, %d skipped; want 4, 4, 1", s.passed, s.failed, s.skipped)
	}
	for _, want := range []string{"broken.go:1: no", "two is wrong", "cleanup is wrong", "not here", "timed out", "TestGood cases: 3 passed\n"} {
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
