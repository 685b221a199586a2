package review

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// What ingress-nginx's webhook refuses, and its controller serves. docs/admission.md has
// the list.

// defaultPrefix is that of annotations without --annotations-prefix.
const defaultPrefix = "nginx.ingress.kubernetes.io"

// plainPath is what a path of type Exact or Prefix must look like.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._-]*$`)

// checkAlone finds what is wrong with an Ingress by itself.
func (r *Reviewer) checkAlone(ing *networkingv1.Ingress, d *Decision) {
	keys := r.builder.Keys(r.store)
	for _, name := range slices.Sorted(maps.Keys(ing.Annotations)) {
		if r.settings.AnnotationPrefix != defaultPrefix && strings.HasPrefix(name, defaultPrefix+"/") {
			d.add(finding.Finding{
				Object: spec.ObjectName(ing), Field: name, Code: finding.NotAllowed,
				Message: fmt.Sprintf("the prefix must be %s (--annotations-prefix)", r.settings.AnnotationPrefix),
			}, Refuse)
		}
		if strings.HasSuffix(name, "-snippet") && !feature.AllowsSnippets(keys) {
			d.add(finding.Finding{
				Object: spec.ObjectName(ing), Field: name, Code: finding.NotAllowed,
				Message: "the key allow-snippet-annotations does not allow annotations whose names end in -snippet",
			}, Refuse)
		}
	}
	verdict := Warn
	if feature.StrictPathTypes(keys) {
		verdict = Refuse
	}
	for field, path := range paths(ing) {
		kind := path.PathType
		if kind == nil || *kind == networkingv1.PathTypeImplementationSpecific || plainPath.MatchString(path.Path) {
			continue
		}
		d.add(finding.Finding{
			Object: spec.ObjectName(ing), Field: field, Code: finding.InvalidValue,
			Message: fmt.Sprintf("path %q of type %s must consist of letters, digits and /._- (key strict-validate-path-type); ImplementationSpecific paths may have others",
				finding.Shorten(path.Path), finding.Shorten(string(*kind))),
		}, verdict)
	}
}

// paths are those of all rules, by field.
func paths(ing *networkingv1.Ingress) func(yield func(string, *networkingv1.HTTPIngressPath) bool) {
	return func(yield func(string, *networkingv1.HTTPIngressPath) bool) {
		for i := range ing.Spec.Rules {
			for j, path := range pathsOf(ing, i) {
				if !yield(fieldOf(i, j), &path) {
					return
				}
			}
		}
	}
}

// fieldOf is the field of a path, as findings of build have it.
func fieldOf(rule, path int) string { return fmt.Sprintf("spec.rules[%d].http.paths[%d]", rule, path) }

func pathsOf(ing *networkingv1.Ingress, rule int) []networkingv1.HTTPIngressPath {
	if http := ing.Spec.Rules[rule].HTTP; http != nil {
		return http.Paths
	}
	return nil
}

// checkPaths refuses an Ingress with a path that another Ingress of the host has, of any
// type: one of them would not be served, or get some of the other one's
// requests. Canaries are for the paths of others, and an Ingress with the annotation, even
// if it is false, is let in as by ingress-nginx.
func (r *Reviewer) checkPaths(ing *networkingv1.Ingress, d *Decision) {
	canary := r.settings.AnnotationPrefix + "/canary"
	if _, has := ing.Annotations[canary]; has {
		return
	}
	rules := r.rules.Of(ing)
	for _, host := range slices.Sorted(maps.Keys(rules.ByHost)) {
		var mine map[string]string // fields by path
		for _, other := range r.store.Ingresses(host) {
			if _, has := other.Annotations[canary]; has || other == ing {
				continue
			}
			if mine == nil {
				mine = fieldsOf(ing, rules.ByHost[host])
			}
			for _, i := range r.rules.Of(other).ByHost[host] {
				for _, path := range pathsOf(other, i) {
					if field, both := mine[cmp.Or(path.Path, "/")]; both {
						d.add(finding.Finding{
							Object: spec.ObjectName(ing), Field: field, Code: finding.Conflict,
							Message: fmt.Sprintf("path %s of host %s is in %s already", finding.Shorten(cmp.Or(path.Path, "/")), host, spec.ObjectName(other)),
						}, Refuse)
					}
				}
			}
		}
	}
}

func fieldsOf(ing *networkingv1.Ingress, rules []int) map[string]string {
	fields := map[string]string{}
	for _, i := range rules {
		for j, path := range pathsOf(ing, i) {
			fields[cmp.Or(path.Path, "/")] = fieldOf(i, j)
		}
	}
	return fields
}
