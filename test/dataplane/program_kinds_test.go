package dataplane_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// recordedLines has the access log of one request of each kind, sorted. The referer of most is the
// host that they are for.
const recordedLines = "testdata/prometheus/access.log"

// checkLines compares the access log of requests of all kinds with the recorded one.
func (p *program) checkLines() {
	p.t.Helper()
	text, err := os.ReadFile(recordedLines)
	if err != nil {
		p.t.Fatal(err)
	}
	want := string(text)
	var got string
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			p.t.Errorf("%s (-want +got):\n%s\nGot:\n%s", recordedLines, diff, got)
		}
	}()
	headgatetest.Eventually(p.t, "all requests are logged", func() bool {
		got = p.lines()
		return got == want
	})
}

// lines are those of the access log, with what differs from run to run hidden, sorted.
func (p *program) lines() string {
	id := regexp.MustCompile(` [0-9a-f]{32}$`)
	var rows []string
	for line := range strings.Lines(p.log.String()) {
		if line = strings.TrimSuffix(line, "\n"); logLine.MatchString(line) {
			rows = append(rows, id.ReplaceAllString(masked(line), " ID")+"\n")
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

// checkFamilies compares what is stored with all families of ingress-nginx: names, and buckets as
// they are by default.
func (s *prometheus) checkFamilies() {
	s.t.Helper()
	known := knownFamilies(s.t)
	differentFamilies(s.t, known)
	var wrong []string
	defer func() {
		if len(wrong) > 0 {
			s.t.Errorf("families of ingress-nginx:\n%s", strings.Join(wrong, "\n"))
		}
	}()
	headgatetest.Eventually(s.t, "all families are stored", func() bool {
		wrong = nil
		for name, f := range known {
			if why := s.differs(name, f); why != "" {
				wrong = append(wrong, name+": "+why)
			}
		}
		if len(wrong) > 0 {
			time.Sleep(scrapes / 4)
		}
		return len(wrong) == 0
	})
}

// differs says how what is stored of a family differs from what is known, if it does.
func (s *prometheus) differs(name string, f knownFamily) string {
	wanted, matches := isUnder(f.condition, true, true), `{__name__="`+name+`"}`
	switch {
	case strings.HasSuffix(name, "_"):
		wanted, matches = true, `{__name__=~"`+name+`.+"}`
	case f.kind == "histogram":
		matches = name + "_bucket"
	}
	found, err := s.labelValues("__name__", matches)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(found) > 0 != wanted {
		return fmt.Sprintf("there are series of %q (%s)", found, f.condition)
	}
	if f.kind != "histogram" || !wanted {
		return ""
	}
	buckets, err := s.labelValues("le", matches)
	if err != nil {
		s.t.Fatal(err)
	}
	if want := append(slices.Clone(f.buckets), "+Inf"); !slices.Equal(numbers(s.t, buckets), numbers(s.t, want)) {
		return "its buckets are " + strings.Join(buckets, " ") + ", want " + strings.Join(want, " ")
	}
	return ""
}

// numbers are those that texts stand for, sorted.
func numbers(t *testing.T, texts []string) []float64 {
	t.Helper()
	list := make([]float64, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = n
	}
	slices.Sort(list)
	return list
}
