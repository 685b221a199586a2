// Package leftover finds what Ingresses and Deployments still have of older versions
// of ingress-nginx, or of another controller, and what no longer works.
//
// It looks at one object at a time, without a cluster and without libpcre2, so that it
// works on every system. What Headgate serves of an object is known by build.
package leftover

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// A Leftover is one field of an object that does not have the effect that it had, or
// that it seems to have.
type Leftover struct {
	// Field is the annotation or the flag.
	Field string `json:"field"`
	// Since is the version of ingress-nginx from which it counts, empty for all.
	Since string `json:"since,omitempty"`
	// Message is what is wrong, and Advice what to do.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Versions are the versions of ingress-nginx whose leftovers count, both included.
type Versions struct{ from, to *version.Version }

// ParseVersions reads the bounds, such as 0.24.0 and v1.15.
func ParseVersions(from, to string) (Versions, error) {
	first, err := version.ParseGeneric(from)
	if err != nil {
		return Versions{}, err
	}
	last, err := version.ParseGeneric(to)
	if err != nil {
		return Versions{}, err
	}
	return Versions{first, last}, nil
}

// Has reports whether a leftover counts.
func (v Versions) Has(l Leftover) bool {
	if l.Since == "" {
		return true
	}
	since := version.MustParseGeneric(l.Since)
	return since.AtLeast(v.from) && v.to.AtLeast(since)
}

// removed are the annotations that ingress-nginx had once.
var removed = []struct{ name, since, advice string }{
	{"add-base-url", "0.22.0", "let the application set the base URL of its pages"},
	{"base-url-scheme", "0.22.0", "let the application set the base URL of its pages"},
	{"grpc-backend", "0.21.0", `set PREFIX/backend-protocol to "GRPC"`},
	{"mirror-uri", "0.28.1", "set PREFIX/mirror-target to the URL of the mirror"},
	{"secure-backends", "0.21.0", `set PREFIX/backend-protocol to "HTTPS"`},
	{"session-cookie-hash", "0.24.0", "delete it: nothing replaces it"},
}

// otherPrefixes are those of a controller with a similar name.
var otherPrefixes = []string{"nginx.com/", "nginx.org/"}

// satisfyDirective finds the directive in a snippet.
var satisfyDirective = regexp.MustCompile(`(?:^|[;{}\n])[ \t]*satisfy[ \t\n]`)

// Ingress returns the leftovers of an Ingress, sorted by field. prefix is that of the
// annotations that the controller reads, without the slash.
func Ingress(ing *networkingv1.Ingress, prefix string) []Leftover {
	var found []Leftover
	for _, r := range removed {
		if _, ok := ing.Annotations[prefix+"/"+r.name]; ok {
			found = append(found, Leftover{
				prefix + "/" + r.name, r.since, "the annotation was removed and has no effect", strings.ReplaceAll(r.advice, "PREFIX", prefix),
			})
		}
	}
	for _, check := range []func(map[string]string, string) (Leftover, bool){rewriteTarget, forwardedPrefix, satisfy} {
		if l, ok := check(ing.Annotations, prefix); ok {
			found = append(found, l)
		}
	}
	for name := range ing.Annotations {
		if slices.ContainsFunc(otherPrefixes, func(other string) bool { return strings.HasPrefix(name, other) }) {
			found = append(found, Leftover{
				name, "", "the prefix is that of another controller, NGINX Ingress Controller of F5: the annotation has no effect",
				"use the annotation of " + prefix + "/ with the same purpose, or delete it",
			})
		}
	}
	slices.SortFunc(found, func(a, b Leftover) int { return cmp.Compare(a.Field, b.Field) })
	return found
}

// rewriteTarget finds targets that need no group: since 0.22.0, the rest of the path
// must be a group of the path's regular expression.
func rewriteTarget(annotations map[string]string, prefix string) (Leftover, bool) {
	name := prefix + "/rewrite-target"
	value, ok := annotations[name]
	return Leftover{
		name, "0.22.0", "the value names no capture group: every path of the Ingress is rewritten to this one path",
		"if the rest of the path is to be kept, make it a group of the path, such as /app(/|$)(.*), and name the group: /$2",
	}, ok && !strings.Contains(value, "$")
}

func forwardedPrefix(annotations map[string]string, prefix string) (Leftover, bool) {
	name := prefix + "/x-forwarded-prefix"
	value := strings.ToLower(strings.TrimSpace(annotations[name]))
	return Leftover{
		name, "0.24.0", "the value is a boolean: it is sent to the backend as it is",
		"set the value of the header X-Forwarded-Prefix, such as /app, or delete the annotation",
	}, value == "true" || value == "false"
}

func satisfy(annotations map[string]string, prefix string) (Leftover, bool) {
	name := prefix + "/configuration-snippet"
	return Leftover{
		name, "", "the snippet has the directive satisfy", "set " + prefix + "/satisfy instead",
	}, satisfyDirective.MatchString(annotations[name])
}
