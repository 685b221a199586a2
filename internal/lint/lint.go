// Package lint tells people what is wrong with manifests, and where.
//
// It knows findings, how serious their codes are and the forms that they are
// printed in. Which findings there are is for package survey, where objects
// stand for package source/file.
package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/survey"
	"github.com/headgate/headgate/internal/unit"
)

// Options say what is told and how.
type Options struct {
	// Root is what was read: the place of findings that no file is to blame for.
	Root string
	// Show gives a path the form in which it is told.
	Show func(path string) string
	// Ignore has the codes of findings to leave out.
	Ignore []finding.Code
	// Version is Headgate's own.
	Version string
}

// A Result is a finding with its place.
type Result struct {
	Path string `json:"path"`
	// Line counts from 1; 0 means the file or folder as a whole.
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	finding.Finding
	// Referrer is the Ingress that refers to Object where no file has that: the
	// place is the Ingress's. Empty for all others.
	Referrer string `json:"referrer,omitempty"`
}

// A Report is all that is told.
type Report struct {
	// Ingresses is how many were read, Served how many of them are served: the
	// others are of another class or namespace, or have no rules.
	Ingresses int `json:"ingresses"`
	Served    int `json:"served"`
	// Errors and Notices count the Results.
	Errors  int `json:"errors"`
	Notices int `json:"notices"`
	// Results are in the order of their places.
	Results []Result `json:"findings"`

	version string
	// foreign says why Ingresses are not served that are of another class or
	// namespace.
	foreign []string
}

// Check finds the places of all findings of what was read.
func Check(read *file.Once, surveyed *survey.Survey, o Options) Report {
	c := checker{read: read, surveyed: surveyed, options: o, kinds: kindsOf(read.Changes), results: map[Result]bool{}}
	for path, problems := range read.Problems {
		for _, p := range problems {
			c.addProblem(path, p)
		}
	}
	for unit, findings := range surveyed.Findings {
		for _, f := range findings {
			c.addFinding(unit, f)
		}
	}
	c.addOwn()
	report := Report{Ingresses: c.kinds["Ingress"], Served: served(surveyed), Results: []Result{}, version: o.Version, foreign: foreign(surveyed)}
	for r := range c.results {
		if r.Severity == Error {
			report.Errors++
		} else {
			report.Notices++
		}
		report.Results = append(report.Results, r)
	}
	slices.SortFunc(report.Results, compare)
	return report
}

func compare(a, b Result) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Referrer, b.Referrer))
}

// A checker collects results. Two units may have the same finding.
type checker struct {
	read     *file.Once
	surveyed *survey.Survey
	options  Options
	// kinds counts the objects that were read.
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

// addFinding places a finding about an object that no file has at those who
// refer to it.
func (c *checker) addFinding(key unit.Key, f finding.Finding) {
	if place, ok := c.read.Place(f.Object, f.Field); ok {
		c.add(place, "", f)
		return
	}
	placed := false
	if key.Kind == unit.Backend {
		view := c.surveyed.View
		refer := func(name, field string) {
			if place, ok := c.read.Place(name, field); ok {
				c.add(place, name, f)
				placed = true
			}
		}
		for _, ing := range slices.Concat(view.Users(key.Name), view.Callers(key.Name)) {
			refer("ingress/"+ing.Namespace+"/"+ing.Name, fieldOf(ing, key.Name))
		}
		if options := view.ConfigMap(); options != nil && view.CalledByOptions(key.Name) {
			refer("configmap/"+options.Namespace+"/"+options.Name, fieldNaming(options.Data, key.Name))
		}
	}
	if !placed {
		c.add(file.Place{Path: c.options.Root}, "", f)
	}
}

func kindsOf(changes []source.Change) map[string]int {
	kinds := map[string]int{}
	for _, change := range changes {
		kinds[kindOf(change.Object)]++
	}
	return kinds
}

// kindOf is the name of an object's Go type, which is that of its kind.
func kindOf(o metav1.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// foreign has the reasons for which Ingresses of others are not served, each with
// their number.
func foreign(surveyed *survey.Survey) []string {
	numbers := map[string]int{}
	for _, u := range surveyed.View.Foreign() {
		numbers[u.Why]++
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(numbers)) {
		reasons = append(reasons, fmt.Sprintf("%d not: %s", numbers[why], why))
	}
	return reasons
}

// served counts the Ingresses that hosts are made of.
func served(surveyed *survey.Survey) int {
	seen := map[*networkingv1.Ingress]bool{}
	for host := range surveyed.Hosts {
		for _, ing := range slices.Concat(surveyed.View.Ingresses(host), surveyed.View.Canaries(host)) {
			seen[ing] = true
		}
	}
	return len(seen)
}
