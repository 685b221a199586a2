// Package lint is the command "lint": it reports what is wrong with manifests, with file and line.
//
// It knows findings, their severity and the formats of the report. Package
// snapshot makes the findings, and source/file knows the locations of objects.
// Objects of a cluster have no location.
package lint

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/unit"
)

// Options select what is reported, and how.
type Options struct {
	// Root is the path that was read: the location of findings without a file.
	Root string
	// Show converts a path to the form in the report.
	Show func(path string) string
	// Ignore has the codes of findings to omit.
	Ignore []finding.Code
	// Version is the version of Headgate.
	Version string
}

// A Result is a finding with its location.
type Result struct {
	Path string `json:"path,omitempty"`
	// Line counts from 1; 0 means the file or folder as a whole.
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	finding.Finding
	// Referrer is the Ingress that refers to Object if no file has that object.
	// Then the location is that of the Ingress.
	Referrer string `json:"referrer,omitempty"`
}

// A Report is the result of lint.
type Report struct {
	// Ingresses is the number of those read, Served of those served. The others
	// have another class or namespace, or no rules.
	Ingresses int `json:"ingresses"`
	Served    int `json:"served"`
	// Errors and Notices are the numbers of Results by severity.
	Errors  int `json:"errors"`
	Notices int `json:"notices"`
	// Results are sorted by location.
	Results []Result `json:"findings"`

	version string
	// foreign are the reasons why Ingresses of another class or namespace are not
	// served.
	foreign []string
}

// Check finds the locations of all findings about the manifests.
func Check(read *file.Once, snap *snapshot.Snapshot, o Options) Report {
	c := checker{changes: read.Changes, place: read.Place, snap: snap, options: o, kinds: map[string]int{}, results: map[Result]bool{}}
	for _, change := range read.Changes {
		c.kinds[kindOf(change.Object)]++
	}
	for path, problems := range read.Problems {
		for _, p := range problems {
			c.addProblem(path, p)
		}
	}
	return c.check()
}

// CheckCluster reports the findings about the objects of a cluster, which have no location.
// Unlike manifests, a cluster has all objects: what is missing does not exist.
func CheckCluster(changes []source.Change, snap *snapshot.Snapshot, o Options) Report {
	known := map[string]bool{}
	for _, change := range changes {
		known[nameOf(change.Object)] = true
	}
	o.Show = func(string) string { return "" }
	c := checker{changes: changes, snap: snap, options: o, results: map[Result]bool{}}
	c.place = func(object, _ string) (file.Place, bool) { return file.Place{}, known[object] }
	return c.check()
}

func (c *checker) check() Report {
	snap := c.snap
	for unit, findings := range snap.Findings {
		for _, f := range findings {
			c.addFinding(unit, f)
		}
	}
	c.addOwn()
	report := Report{Served: served(snap), Results: []Result{}, version: c.options.Version, foreign: foreign(snap)}
	for _, change := range c.changes {
		if _, ok := change.Object.(*networkingv1.Ingress); ok {
			report.Ingresses++
		}
	}
	for r := range c.results {
		if r.Severity == Error {
			report.Errors++
		} else {
			report.Notices++
		}
		report.Results = append(report.Results, r)
	}
	slices.SortFunc(report.Results, func(a, b Result) int {
		return cmp.Or(
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line),
			finding.Compare(a.Finding, b.Finding), cmp.Compare(a.Referrer, b.Referrer))
	})
	return report
}

// A checker collects results without duplicates: several units may have the same
// finding.
type checker struct {
	changes []source.Change
	// place returns the location of a field of an object.
	place   func(object, field string) (file.Place, bool)
	snap    *snapshot.Snapshot
	options Options
	// kinds counts the objects of manifests, by kind. For a cluster it is nil: what was not read does not exist.
	kinds   map[string]int
	results map[Result]bool
}

func (c *checker) add(place file.Place, referrer string, f finding.Finding) {
	if slices.Contains(c.options.Ignore, f.Code) {
		return
	}
	c.results[Result{
		Path: c.options.Show(place.Path), Line: place.Line, Severity: severityOf(f, c.kinds), Finding: f, Referrer: referrer,
	}] = true
}

func (c *checker) addProblem(path string, p file.Problem) {
	f := finding.Finding{
		Object: "file/" + c.options.Show(path), Code: finding.BadManifest, Message: p.Reason, Effect: p.Effect,
	}
	if p.Object != "" {
		f.Object, f.Field, f.Code = p.Object, p.Field, finding.OldVersion
	}
	c.add(file.Place{Path: path, Line: p.Line}, "", f)
}

// addFinding adds a finding. If no file has its object, the locations are those of
// the Ingresses that refer to it.
func (c *checker) addFinding(key unit.Key, f finding.Finding) {
	if place, ok := c.place(f.Object, f.Field); ok {
		c.add(place, "", f)
		return
	}
	placed := false
	if key.Kind == unit.Backend {
		view := c.snap.View
		refer := func(name, field string) {
			if place, ok := c.place(name, field); ok {
				c.add(place, name, f)
				placed = true
			}
		}
		for _, ing := range slices.Concat(view.Users(key.Name), view.Callers(key.Name)) {
			refer(spec.ObjectName(ing), fieldOf(ing, key.Name))
		}
		if options := view.ConfigMap(); options != nil && view.CalledByOptions(key.Name) {
			refer("configmap/"+options.Namespace+"/"+options.Name, fieldNaming(options.Data, key.Name))
		}
	}
	if !placed {
		c.add(file.Place{Path: c.options.Root}, "", f)
	}
}

// kindOf returns the name of an object's Go type, which is its kind.
func kindOf(o metav1.Object) string { return reflect.TypeOf(o).Elem().Name() }

// nameOf returns the name of an object as in findings.
func nameOf(o metav1.Object) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return strings.ToLower(kindOf(o)) + "/" + name
}

// foreign returns the reasons why Ingresses of another class or namespace are not
// served, with their numbers.
func foreign(snap *snapshot.Snapshot) []string {
	numbers := map[string]int{}
	for _, u := range snap.View.Foreign() {
		numbers[u.Why]++
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(numbers)) {
		reasons = append(reasons, fmt.Sprintf("%d not: %s", numbers[why], why))
	}
	return reasons
}

// served is the number of Ingresses with routes.
func served(snap *snapshot.Snapshot) int {
	seen := map[*networkingv1.Ingress]bool{}
	for key := range snap.Models {
		if key.Kind != unit.Host {
			continue
		}
		for _, ing := range slices.Concat(snap.View.Ingresses(key.Name), snap.View.Canaries(key.Name)) {
			seen[ing] = true
		}
	}
	return len(seen)
}
