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
	update = flag.Bool("update", false, "rewrite passing.txt")
	only   = flag.String("only", "", "the case, or the area of cases, to run alone")
	all    = flag.Bool("all", os.Getenv("CI") == "true", "run all cases, not only those that are listed or decide where a request goes")
)

const (
	passingFile = "passing.txt"
	routingFile = "lists/routing.txt"
	updateHint  = "go test ./test/compat -update -only "
)

// A result is the runner's result of one case.
type result struct {
	ID       string   `json:"id"`
	Result   string   `json:"result"`
	Failures []string `json:"failures"`
}

func (r result) passed() bool { return r.Result == "passed" }

// TestCases runs the cases and compares what passes with passing.txt: a case
// that is listed must pass, and one that passes must be listed. Cases with
// another result are run once more, with longer waits, since the cluster takes
// seconds to delete a namespace. Their second result is final.
//
// By default the cases of passing.txt and routing.txt run. Others often fail by a
// timeout, which takes minutes. They run in continuous integration, with -update,
// with -only and with -all; only then the test notices that one of them passes.
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
	checkLists(t, cases, results, listed)
	report(t, results, listed)
}

// checkLists finds errors that results don't show: a case that run.py skips,
// which only its log says, one that no file of lists/ has, and one that passing.txt
// lacks without a reason.
func checkLists(t *testing.T, cases []string, results map[string]result, listed map[string]bool) {
	t.Helper()
	for _, id := range cases {
		if _, ok := results[id]; !ok && listed[id] {
			t.Errorf("%s has %s, but run.py has no result of it", passingFile, id)
		}
	}
	files, err := filepath.Glob("lists/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("lists: %q, %v", files, err)
	}
	left := map[string]bool{}
	for _, id := range caseFiles(t, func(string) bool { return true }) {
		left[id] = true
	}
	for _, file := range files {
		for _, id := range slices.Sorted(maps.Keys(idList(t, file))) {
			delete(left, id)
			switch {
			case listed[id] && better[id] != "":
				t.Errorf("%s passes, and is said to be answered otherwise", id)
			case !listed[id] && better[id] == "":
				t.Errorf("%s must pass, since %s lists it, but %s does not list it: %s%s", id, file, passingFile, updateHint, id)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("no file of lists/ has %s", id)
	}
}

// better are the cases that Headgate answers otherwise on purpose, with the reason;
// docs/differences.md has them.
var better = map[string]string{
	"addresses/proxy-protocol-and-headers": "without X-Forwarded-For, the address in the PROXY header counts, and not that of the load balancer",
	"addresses/trust-cidr":                 "X-Forwarded-Proto, -Host and -Port count only from who is trusted",
	"cors/credentials-with-origin":         varyOrigin,
	"cors/dots-and-regex":                  varyOrigin,
	"cors/origin":                          varyOrigin,
	"cors/origin-not-anchored":             varyOrigin,
	"cors/origin-one-without-scheme":       varyOrigin,
	"cors/origin-other-scheme":             varyOrigin,
	"cors/origin-trailing-comma":           varyOrigin,
	"cors/origin-wildcard":                 varyOrigin,
	"cors/origin-wildcard-port":            varyOrigin,
	"cors/two-policies":                    varyOrigin,
	"external-auth/empty-url":              emptyGuard,
	"external-auth/https-service":          unverifiedService,
	"external-auth/https-service-name":     unverifiedService,
	"headers/connection-default":           "Upgrade: h2c would open a tunnel to the backend that no rule sees",
	"invalid/blank-values":                 emptyGuard,
	"invalid/enable-modsecurity":           "an invalid value must not switch the inspection of requests off: the paths answer 503",
	"invalid/risk-high":                    riskyIngress,
	"invalid/risk-low":                     riskyIngress,
	"invalid/risk-medium":                  riskyIngress,
	"invalid/validation-off":               "the flag has no effect: values are data, and a target of redirects has no variables",
	"protocols/sni-without-secret":         "proxy-ssl-name and proxy-ssl-server-name act without a Secret, since backends answer by SNI alone",
	"snippets/allow-only":                  riskyIngress,
	"snippets/off":                         riskyIngress,
	"status/refused-untouched":             "Headgate serves the hosts of an Ingress with an invalid value, so its status has the addresses",
}

// Reasons of several cases.
const (
	emptyGuard        = "paths with an empty auth-url or auth-type answer 503: their owner believes that clients are authenticated"
	riskyIngress      = "paths of an Ingress that the risk level forbids answer 503, so that no route with weaker access control gets their requests"
	varyOrigin        = "responses that depend on the header Origin say so, since caches would mix them up"
	unverifiedService = "an auth service outside the cluster whose certificate can't be verified allows no request, since another one may answer for it"
)

// caseFiles returns the ids of the cases to run; an id is the path of its file.
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

// writePassing updates the list with the results. Cases that did not run stay.
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
				t.Run(strings.TrimPrefix(id, area+"/"), func(t *testing.T) { checkResult(t, r, listed[id]) })
			}
			// Attributes reach scripts/testsummary, which shows them.
			t.Attr("cases", fmt.Sprintf("%d passed, %d failed, %d not yet", passed, failed, later))
		})
	}
}

func checkResult(t *testing.T, r result, listed bool) {
	switch {
	case r.passed() && !listed:
		t.Errorf("passes, but %s does not list it: %s%s", passingFile, updateHint, r.ID)
	case !r.passed():
		for _, failure := range r.Failures {
			t.Errorf("FAIL %s  %s", r.ID, failure)
		}
		if len(r.Failures) == 0 {
			t.Errorf("%s, without a reason", r.Result)
		}
	}
}

// A runner runs run.py.
type runner struct {
	controller *controller
	// command is the beginning of the commands for run.py to call.
	command string
}

// check runs the cases. After each change it waits until Headgate has synced, and
// for extra seconds more. The names of the run's files begin with its name.
func (r runner) check(t *testing.T, name string, ids []string, extra int) map[string]result {
	t.Helper()
	out := r.controller.file(name + ".json")
	args := []string{
		// The runner's own children end with it.
		"--pid", "--fork", "--kill-child=KILL", "python3", "run.py", "--check", "--kubeconfig", r.controller.cluster.Kubeconfig(),
		"--json", out,
		"--restart", r.command + restartOrder, "--restart-for-config", "--settled", r.command + syncedOrder,
		"--live-timeout", "10", "--settle", fmt.Sprint(extra),
		// The cases ask for many combinations of static settings, one after the other.
		"--base-config", "reload-burst=1000", "--base-config", "reload-generations=1000",
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
	// Its exit status only says that a case failed; the results are in its output.
	ended := cmd.Run()
	text, err := os.ReadFile(out)
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("run.py (%v): %v; its output:\n%s", ended, err, said[max(0, len(said)-4000):])
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
