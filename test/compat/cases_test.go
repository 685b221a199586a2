package compat_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write passing.txt anew")
	only   = flag.String("only", "", "the case, or the area of cases, to run alone")
	all    = flag.Bool("all", os.Getenv("CI") == "true", "run all cases, not only those that are listed or decide where a request goes")
)

const (
	passingFile = "passing.txt"
	routingFile = "lists/routing.txt"
	updateHint  = "go test ./test/compat -update -only "
)

// A result is the runner's word on one case.
type result struct {
	ID       string   `json:"id"`
	Result   string   `json:"result"`
	Failures []string `json:"failures"`
}

func (r result) passed() bool { return r.Result == "passed" }

// TestCases runs the cases and compares what passes with passing.txt: a case
// that is listed must pass, and one that passes must be listed. A case that
// does not do as listed is run again, with more patience, and that counts: the
// cluster takes seconds to delete a namespace.
//
// What is not listed often fails by a timeout, so that all cases take minutes
// more than the usual ones, which are those of passing.txt and routing.txt. In
// continuous integration, with -update, -only or -all, all are run. Otherwise
// it is not seen when another case begins to pass.
func TestCases(t *testing.T) {
	c := newController(t)
	listed := idList(t, passingFile)
	routing := idList(t, routingFile)
	cases := caseFiles(t, func(id string) bool {
		if *only != "" {
			return id == *only || strings.HasPrefix(id, *only+"/")
		}
		return *all || *update || listed[id] || routing[id]
	})
	run := runner{controller: c, command: c.takeOrders(t)}
	results := run.check(t, "first", cases, 0)
	var again []string
	for id, r := range results {
		if r.passed() != listed[id] {
			again = append(again, id)
		}
	}
	slices.Sort(again)
	if len(again) > 0 {
		maps.Copy(results, run.check(t, "again", again, 3))
	}
	if *update {
		writePassing(t, listed, results)
		listed = idList(t, passingFile)
	}
	checkLists(t, cases, results, listed, routing)
	report(t, results, listed)
}

// checkLists finds what results alone don't show: a case that run.py leaves
// out, which only its log tells of, and one that must pass whatever
// passing.txt says.
func checkLists(t *testing.T, cases []string, results map[string]result, listed, routing map[string]bool) {
	t.Helper()
	for _, id := range cases {
		if _, ok := results[id]; !ok && listed[id] {
			t.Errorf("%s has %s, and run.py has no result of it", passingFile, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(routing)) {
		if !listed[id] {
			t.Errorf("%s must pass, as %s says, and %s does not list it: %s%s", id, routingFile, passingFile, updateHint, id)
		}
	}
}

// caseFiles are the ids of the cases to run; an id is the path of its file.
func caseFiles(t *testing.T, wanted func(id string) bool) []string {
	t.Helper()
	var ids []string
	err := filepath.WalkDir("cases", func(path string, _ fs.DirEntry, err error) error {
		id, found := strings.CutSuffix(strings.TrimPrefix(path, "cases/"), ".yaml")
		if found && wanted(id) {
			ids = append(ids, id)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) == 0 {
		t.Fatal("no cases")
	}
	return ids
}

func idList(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, id := range strings.Fields(string(text)) {
		if _, err := os.Stat("cases/" + id + ".yaml"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		ids[id] = true
	}
	return ids
}

// writePassing lists what passed now, and leaves what was not run.
func writePassing(t *testing.T, listed map[string]bool, results map[string]result) {
	t.Helper()
	for id, r := range results {
		listed[id] = r.passed()
	}
	maps.DeleteFunc(listed, func(_ string, passed bool) bool { return !passed })
	ids := slices.Sorted(maps.Keys(listed))
	if err := os.WriteFile(passingFile, []byte(strings.Join(ids, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// report has a subtest for each area, and in it one for each case that passes
// or should.
func report(t *testing.T, results map[string]result, listed map[string]bool) {
	areas := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(results)) {
		area, _, _ := strings.Cut(id, "/")
		areas[area] = append(areas[area], id)
	}
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		t.Run(area, func(t *testing.T) {
			passed, failed, later := 0, 0, 0
			for _, id := range areas[area] {
				r := results[id]
				switch {
				case r.passed():
					passed++
				case listed[id]:
					failed++
				default:
					later++
					continue
				}
				t.Run(strings.TrimPrefix(id, area+"/"), func(t *testing.T) { judge(t, r, listed[id]) })
			}
			// Attributes reach scripts/testsummary, which shows them.
			t.Attr("cases", fmt.Sprintf("%d passed, %d failed, %d not yet", passed, failed, later))
		})
	}
}

func judge(t *testing.T, r result, listed bool) {
	switch {
	case r.passed() && !listed:
		t.Errorf("passes, and %s does not list it: %s%s", passingFile, updateHint, r.ID)
	case !r.passed():
		for _, failure := range r.Failures {
			t.Errorf("FAIL %s  %s", r.ID, failure)
		}
		if len(r.Failures) == 0 {
			t.Errorf("%s: no word why", r.Result)
		}
	}
}

// A runner runs run.py.
type runner struct {
	controller *controller
	// command is how the commands that run.py is to call begin.
	command string
}

// check runs the cases, with so many seconds of patience after each change
// beside what Headgate asks for. The names of the run's files begin with its
// name.
func (r runner) check(t *testing.T, name string, ids []string, patience int) map[string]result {
	t.Helper()
	out := r.controller.file(name + ".json")
	args := []string{
		// The runner's own children end with it.
		"--pid", "--fork", "--kill-child=KILL", "python3", "run.py", "--check", "--kubeconfig", r.controller.cluster.Kubeconfig(),
		"--json", out,
		"--restart", r.command + restartOrder, "--restart-for-config", "--settled", r.command + settledOrder,
		"--live-timeout", "10", "--settle", fmt.Sprint(patience),
	}
	for _, id := range ids {
		args = append(args, "cases/"+id+".yaml")
	}
	cmd := r.controller.cluster.Command(t.Context(), "unshare", args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+r.controller.dir, "PYTHONUNBUFFERED=1")
	log, err := os.Create(r.controller.file(name + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	// Its exit status says that a case failed; what counts is what it wrote.
	ended := cmd.Run()
	text, err := os.ReadFile(out)
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("run.py (%v): %v; it said:\n%s", ended, err, said[max(0, len(said)-4000):])
	}
	var summary struct{ Cases []result }
	if err := json.Unmarshal(text, &summary); err != nil {
		t.Fatalf("run.py's results: %v", err)
	}
	results := map[string]result{}
	for _, one := range summary.Cases {
		results[one.ID] = one
	}
	return results
}
