// Package rewrite makes paths regular expressions, and changes the paths of requests
// to backends.
package rewrite

import (
	"cmp"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

const (
	name      = "rewrite"
	maxLength = 4000 // bytes of a target
)

//go:embed *.lua
var lua embed.FS

var (
	useRegex = feature.Setting[bool]{
		Annotation: "use-regex", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Makes the paths of the host regular expressions. They are case-insensitive, and match from the start of the request's path. " +
			"One Ingress with this annotation changes the paths of all Ingresses of the host.",
	}
	rewriteTarget = feature.Setting[target]{
		Annotation: "rewrite-target", Parse: parseTarget, Risk: feature.Medium,
		Doc: "The path of requests to the backend. $1 to $9 and $NAME stand for the groups of the path; the query is kept, and %2F becomes a slash, as in ingress-nginx. " +
			"A target that begins with http:// or https:// redirects. Like use-regex, the annotation makes all paths of the host regular expressions.",
	}
	logRewrites = feature.Setting[bool]{
		Annotation: "enable-rewrite-log", Needs: byTarget, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Logs what `rewrite-target` does to requests to the error log, at the level notice: at most 20 lines a second for each host and worker.",
	}
	forwardedPrefix = feature.Setting[template.Template]{
		Annotation: "x-forwarded-prefix", Needs: byTarget, Parse: feature.TemplateOf(path, false), Risk: feature.Medium,
		Doc: "The value of the header X-Forwarded-Prefix in requests with a rewritten path. $1 to $9 stand for the groups of the path.",
	}
)

// byTarget is what acts on rewritten paths only.
var byTarget = feature.Needs(rewriteTarget, func(v feature.Values) bool { return rewriteTarget.Get(v).written != "" })

// Feature is rewrite-target and use-regex.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Regular expressions in paths, and rewriting of paths.",
		Settings: []feature.AnySetting{useRegex, rewriteTarget, forwardedPrefix, logRewrites},
		Route:    route,
		Patterns: patterns,
		Causes:   map[feature.Effect]string{feature.Expressions: useRegex.Annotation},
		Predict:  prediction.ByPhase{prediction.RoutePhase: predict},
		Lua:      lua,
	}
}

// A target is the replacement of a path.
type target struct {
	written  string
	template template.Template
}

// changes reports whether a rule's path becomes another one.
func (t target) changes(path string) bool { return t.written != "" && t.written != path }

func (t target) redirects() bool {
	return strings.HasPrefix(t.written, "http://") || strings.HasPrefix(t.written, "https://")
}

// changesBelow reports whether what lies below the path of a route becomes the
// path itself: ingress-nginx serves a Prefix as two paths, /foo and /foo/.
func (t target) changesBelow(route *model.Route) bool {
	return t.written == route.Path && route.Kind == model.Prefix && !route.Slash && route.Path != "/"
}

// policy is what rewrite.lua reads of a route.
type policy struct {
	// Pattern is the route's path, which may match anywhere in a request's path, or
	// the paths below it.
	Pattern string            `json:"pattern"`
	Target  template.Template `json:"target"`
	// Redirect sends the client to the target.
	Redirect bool              `json:"redirect,omitempty"`
	Prefix   template.Template `json:"prefix,omitempty"`
	// Log logs what becomes of paths.
	Log bool `json:"log,omitempty"`
}

func patterns(v feature.Values, path string) feature.AnySetting {
	switch {
	case useRegex.Get(v):
		return useRegex
	case rewriteTarget.Get(v).changes(path):
		return rewriteTarget
	}
	return nil
}

func route(v feature.Values, out *feature.RouteOut) {
	prefix := forwardedPrefix.Get(v)
	t := rewriteTarget.Get(v)
	path := out.Route.Written()
	expression := path
	switch {
	case t.changesBelow(out.Route):
		expression = "^" + path + "/"
	case !t.changes(path):
		return
	}
	pattern, err := pcre.Compile(expression, pcre.Options{Caseless: true})
	if err != nil {
		return // a path that is not a valid expression is not served
	}
	noteMissingGroups(t, path, pattern.Groups(), out)
	feature.Add(out.Route, name, policy{Pattern: pattern.Text(), Target: t.template, Redirect: t.redirects(), Prefix: prefix, Log: logRewrites.Get(v)})
}

// noteMissingGroups reports what a target takes from a path that does not have it. The route for "/"
// that no rule asked for does not count.
func noteMissingGroups(t target, path string, groups int, out *feature.RouteOut) {
	if out.Route.Default || out.Route.Backend == "" {
		return
	}
	becomes, known := "", true
	var missing []template.Piece
	for _, p := range t.template {
		switch n, err := strconv.Atoi(p.Name); {
		case p.Variable == "":
			becomes += p.Literal
		case p.Variable == "group" && (err == nil && n > groups || err != nil && !strings.Contains(path, "<"+p.Name+">")):
			missing = append(missing, p)
		default:
			known = false
		}
	}
	for _, p := range missing {
		effect := "$" + p.Name + " is replaced by an empty string"
		if known && !t.redirects() {
			effect += fmt.Sprintf(", so the backend is asked for %q for each request", finding.Shorten(cmp.Or(becomes, "/")))
		}
		if p.Name[0] > '9' {
			// NGINX does not start with a variable that nothing sets.
			out.Warn(rewriteTarget, finding.InvalidValue, fmt.Sprintf("the path %q has no group named %q", finding.Shorten(path), p.Name), effect)
			continue
		}
		out.Warn(rewriteTarget, finding.Unexpected, fmt.Sprintf("the target has $%s, and the path %q has no such group: its parentheses are groups, as in /(.*)", p.Name, finding.Shorten(path)), effect)
	}
}

var path = feature.Matching(`^[A-Za-z0-9._~:/$-]+$`, maxLength,
	"must consist of letters, digits and -._~:/, and $ with the number or name of a group, without a query string")

func parseTarget(text string) (target, error) {
	template, err := feature.TemplateOf(path, true)(text)
	return target{text, template}, err
}
