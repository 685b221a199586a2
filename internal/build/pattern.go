package build

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
)

// anyPattern tells whether one of the host's paths is a regular expression:
// then all of them are, as in the predecessor.
func (l *layout) anyPattern(ingresses []*networkingv1.Ingress) bool {
	return slices.ContainsFunc(ingresses, func(ing *networkingv1.Ingress) bool {
		return slices.ContainsFunc(l.pathsOf(ing), func(path string) bool { return l.isPattern(ing, path) })
	})
}

// isPattern tells whether a path is an expression by its Ingress's own doing.
func (l *layout) isPattern(ing *networkingv1.Ingress, path string) bool {
	reader := feature.NewReader(l.builder.prefix, ing.Annotations, l.config)
	return slices.ContainsFunc(l.builder.features, func(f feature.Feature) bool {
		return f.Patterns != nil && f.Patterns(reader, path)
	})
}

// pathsOf are the paths that an Ingress gives the host, "/" if it gives none.
func (l *layout) pathsOf(ing *networkingv1.Ingress) []string {
	var paths []string
	for _, rule := range ing.Spec.Rules {
		if host, ok := hostName(rule.Host); !ok || host != l.host || rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			paths = append(paths, cmp.Or(rule.HTTP.Paths[i].Path, "/"))
		}
	}
	if paths == nil {
		return []string{"/"}
	}
	return paths
}

// patterned turns the routes into patterns, as the predecessor does: bound to
// the start of the path, longer texts first and of equally long ones the later
// in the alphabet. Path types lose their meaning, but for one thing: the Prefix
// of an Ingress that makes no patterns itself leaves its own path to an Exact
// rule for the same text.
func (l *layout) patterned() {
	slices.SortStableFunc(l.routes, func(a, b placed) int {
		return cmp.Or(cmp.Compare(len(b.where.written()), len(a.where.written())), cmp.Compare(b.where.written(), a.where.written()))
	})
	for i := range l.routes {
		r := &l.routes[i]
		text := r.where.written()
		_, exact := l.taken[place{kind: model.Exact, path: text}]
		if exact && r.Kind == model.Prefix && !r.own && isLiteral(text) && !strings.HasSuffix(text, "/") {
			text += "/"
		}
		r.Kind, r.Path, r.Slash = model.Pattern, cmp.Or(l.compiled[text], "^"+text), false
	}
}

// checkPattern tells what is wrong with a path as a regular expression, and
// keeps the expression if that is not just the path behind a "^".
func (l *layout) checkPattern(path string) error {
	if isLiteral(path) {
		return nil
	}
	pattern, err := pcre.Compile("^"+path, pcre.Options{Caseless: true})
	if err != nil {
		return err
	}
	l.compiled[path] = pattern.Text()
	return nil
}

// isLiteral tells whether a path means itself as an expression too.
func isLiteral(path string) bool {
	return !strings.ContainsAny(path, "\\^$.[]|()?*+{}\x00")
}
