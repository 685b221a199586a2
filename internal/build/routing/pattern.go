package routing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

const (
	// maxHostExpressions is how many paths of one host may be more than plain text: a
	// request may be matched with all of them, and each takes its place in the
	// workers' caches.
	maxHostExpressions = 200
	// maxHostExpressionBytes is what they may take together, compiled and as machine
	// code, in each worker. Most take 3 KB.
	maxHostExpressionBytes = 1 << 20
)

// An expression is that of a path that is more than "^" and the path.
type expression struct {
	pattern *pcre.Pattern
	bytes   int
}

func (l *hostBuilder) anyPatterns() bool {
	return slices.ContainsFunc(l.contributions, func(p *contribution) bool {
		_, by := l.patternOf(p)
		return by != nil
	})
}

// patternOf is the first of the paths that an Ingress gives the host which is
// a regular expression, and the setting that makes it one, nil for none: then all
// of the host's are, as in ingress-nginx. An Ingress that gives none counts with "/".
func (l *hostBuilder) patternOf(p *contribution) (path string, by feature.AnySetting) {
	given := false
	for _, i := range p.rules {
		if http := p.Spec.Rules[i].HTTP; http != nil {
			for j := range http.Paths {
				given = true
				if by := l.makesPatterns(p, &http.Paths[j]); by != nil {
					return cmp.Or(http.Paths[j].Path, "/"), by
				}
			}
		}
	}
	if given {
		return "", nil
	}
	return "/", l.isPattern(p, "/")
}

// makesPatterns is the setting by which a path makes the host's paths expressions.
// A Prefix is two paths, its own and the one with a slash, as in ingress-nginx: a
// rewrite to /foo changes /foo/ below the Prefix /foo.
func (l *hostBuilder) makesPatterns(p *contribution, written *networkingv1.HTTPIngressPath) feature.AnySetting {
	path := cmp.Or(written.Path, "/")
	by := l.isPattern(p, path)
	if where, ok := routeKeyOf(written); by == nil && ok && where.kind == model.Prefix && !where.slash && where != root {
		by = l.isPattern(p, path+"/")
	}
	return by
}

// isPattern is the setting by which a path is an expression, nil if it is none.
func (l *hostBuilder) isPattern(p *contribution, path string) feature.AnySetting {
	for _, f := range l.builder.features {
		if f.Patterns != nil {
			if by := f.Patterns(p.Values(), path); by != nil {
				return by
			}
		}
	}
	return nil
}

// patterned turns the routes into patterns, as ingress-nginx does: bound to
// the start of the path, longer texts first and of equally long ones the later
// in the alphabet. Path types lose their meaning, but for two things: the Prefix
// of an Ingress that makes no patterns itself leaves its own path to an Exact
// rule for the same text, and an Exact "/" answers for nothing else.
func (l *hostBuilder) patterned() {
	slices.SortStableFunc(l.routes, func(a, b routeCandidate) int {
		return cmp.Or(
			cmp.Compare(len(b.where.written()), len(a.where.written())), cmp.Compare(b.where.written(), a.where.written()),
			boolCompare(b.where == exactRoot, a.where == exactRoot),
		)
	})
	for i := range l.routes {
		r := &l.routes[i]
		text := r.where.written()
		_, exact := l.taken[routeKey{kind: model.Exact, path: text}]
		if exact && r.Kind == model.Prefix && !r.own && isLiteral(text) && !strings.HasSuffix(text, "/") {
			text += "/"
		}
		path := "^" + text
		if compiled, ok := l.compiled[text]; ok {
			path = compiled.pattern.Text()
		}
		if r.where == exactRoot {
			path = `^/\z`
		}
		r.Kind, r.Path, r.Slash = model.Pattern, path, false
	}
}

// noteExpressions reports paths that look like expressions where none is one: hardly a request has
// such a path.
func (l *hostBuilder) noteExpressions() {
	if l.patterns {
		return
	}
	how := ""
	if name := feature.CauseOf(l.builder.features, feature.Expressions); name != "" {
		how = fmt.Sprintf("; the annotation %s: \"true\" makes them expressions", name)
	}
	for i := range l.placed {
		r := &l.placed[i]
		if path := r.where.written(); looksLikeExpression(path) {
			l.findings = append(l.findings, finding.Finding{
				Object: spec.ObjectName(r.by.Ingress), Field: r.field + ".path", Code: finding.Unexpected,
				Message: fmt.Sprintf("path %q looks like a regular expression, and the paths of host %s are plain text%s", finding.Shorten(path), l.host, how),
				Effect:  "only requests with exactly these characters in their path match",
			})
		}
	}
}

// WouldMatch reports whether the path of a rule that is plain text looks like an expression, which would
// match the path of a request.
func WouldMatch(rule, path string) bool {
	if !looksLikeExpression(rule) {
		return false
	}
	pattern, err := pcre.Compile("^"+rule, pcre.Options{Caseless: true})
	if err != nil {
		return false
	}
	matches, err := pattern.Match(path)
	return err == nil && matches
}

// looksLikeExpression reports whether a path has characters that are hardly in the path of a request,
// and often in an expression.
func looksLikeExpression(path string) bool { return strings.ContainsAny(path, expressionBytes) }

// checkPattern keeps the expression if that is not just the path behind a "^".
func (l *hostBuilder) checkPattern(path string) *spec.Rejection {
	wrong := func(code finding.Code, err any) *spec.Rejection {
		return &spec.Rejection{Code: code, Message: fmt.Sprintf("path %q, a regular expression on this host: %v", finding.Shorten(path), err)}
	}
	if isLiteral(path) {
		if n := len("^" + path); n > pcre.MaxLength {
			return wrong(finding.InvalidValue, fmt.Sprintf("it has %d bytes, %d are allowed", n, pcre.MaxLength))
		}
		return nil
	}
	if l.expressions == maxHostExpressions {
		return wrong(finding.TooMany, fmt.Sprintf("the host has %d older regular expressions, which is the maximum", maxHostExpressions))
	}
	if _, known := l.compiled[path]; known {
		return nil
	}
	if l.refusedExpressions == maxHostExpressions {
		return wrong(finding.TooMany, fmt.Sprintf("older ones of the host are wrong, and after %d of these it is not looked at", maxHostExpressions))
	}
	pattern, err := pcre.Compile("^"+path, pcre.Options{Caseless: true})
	if at := new(pcre.PatternError); errors.As(err, &at) {
		err = &pcre.PatternError{Offset: max(at.Offset-len("^"), 0), Message: at.Message}
	}
	if err != nil {
		l.refusedExpressions++
		return wrong(finding.InvalidValue, err)
	}
	bytes := pattern.Size()
	if l.expressionBytes+bytes > maxHostExpressionBytes {
		l.refusedExpressions++
		return wrong(finding.TooMany, fmt.Sprintf("with the older ones, the compiled regular expressions of the host would take more than %d bytes", maxHostExpressionBytes))
	}
	l.compiled[path] = expression{pattern, bytes}
	return nil
}

const expressionBytes = `()[]{}|*^$?\`

// literalBytes are those that, beside letters and digits, mean themselves in
// an expression. The data plane takes the same for plain text: see plain_text
// in lua/headgate/path_patterns.lua.
const literalBytes = "/_~!@#%&=:;,<>'\"`-"

// isLiteral reports whether a path means itself as an expression too.
func isLiteral(path string) bool {
	for i := range len(path) {
		c := path[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte(literalBytes, c) < 0 {
			return false
		}
	}
	return true
}
