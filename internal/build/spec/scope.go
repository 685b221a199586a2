package spec

import (
	"fmt"
	"regexp"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/finding"
)

// A Scope says which Ingresses are left out as a whole for what is in them.
type Scope struct {
	// DeepInspect leaves out those that look as if they were to read files of
	// the pod, or to write NGINX's configuration.
	DeepInspect bool
	// NoCatchAll leaves out those with a spec.defaultBackend.
	NoCatchAll bool
}

// LeavesOut reports whether an Ingress is left out. Nothing of it is served.
func (s Scope) LeavesOut(ing *networkingv1.Ingress) bool { return s.Why(ing) != "" }

// Why is the first reason for which an Ingress is left out, empty if it is not.
func (s Scope) Why(ing *networkingv1.Ingress) string {
	if fs := s.check(ing); len(fs) > 0 {
		return fs[0].Message
	}
	return ""
}

// Findings say why an Ingress is left out. Without findings it is not.
func (s Scope) Findings(ing *networkingv1.Ingress) []finding.Finding {
	return finding.Limit(s.check(ing))
}

// maxExclusions is how many findings there are about an Ingress that is left out.
const maxExclusions = 20

// exclusions are why an Ingress is left out.
type exclusions struct {
	ing      *networkingv1.Ingress
	findings []finding.Finding
}

func (r *exclusions) add(field, message string) { r.addAs(finding.Excluded, field, message) }

func (r *exclusions) addAs(code finding.Code, field, message string) {
	if len(r.findings) < maxExclusions {
		r.findings = append(r.findings, finding.Finding{
			Object: ObjectName(r.ing), Field: field, Code: code, Message: message,
			Effect: "nothing of this Ingress is served",
		})
	}
}

func (s Scope) check(ing *networkingv1.Ingress) []finding.Finding {
	r := exclusions{ing: ing}
	if s.NoCatchAll && r.ing.Spec.DefaultBackend != nil {
		r.add("spec.defaultBackend", "Ingresses with a default backend are excluded (--disable-catch-all)")
	}
	if s.DeepInspect {
		r.inspect()
	}
	r.hosts()
	return r.findings
}

// hosts refuses an Ingress none of whose hosts is one. One good host would have
// the findings about the bad ones.
func (r *exclusions) hosts() {
	for _, rule := range r.ing.Spec.Rules {
		if _, ok := HostName(rule.Host); ok {
			return
		}
	}
	for i, rule := range r.ing.Spec.Rules {
		r.addAs(finding.InvalidValue, fmt.Sprintf("spec.rules[%d].host", i), BadHost(rule.Host))
	}
}

// BadHost says what is wrong with a host that HostName does not know.
func BadHost(host string) string {
	return fmt.Sprintf("invalid host %q: must be a DNS name", finding.Shorten(host))
}

// inspect reads what ingress-nginx does.
func (r *exclusions) inspect() {
	for i, rule := range r.ing.Spec.Rules {
		r.suspect(rule.Host, "spec.rules[%d].host", i)
		if rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			r.suspect(rule.HTTP.Paths[j].Path, "spec.rules[%d].http.paths[%d].path", i, j)
		}
	}
	for i, entry := range r.ing.Spec.TLS {
		r.suspect(entry.SecretName, "spec.tls[%d].secretName", i)
		for j, host := range entry.Hosts {
			r.suspect(host, "spec.tls[%d].hosts[%d]", i, j)
		}
	}
}

func (r *exclusions) suspect(text, field string, numbers ...any) {
	if what := suspicion(text); what != "" {
		r.add(fmt.Sprintf(field, numbers...),
			fmt.Sprintf("%q contains %s, which --deep-inspect does not allow", finding.Shorten(text), what))
	}
}

// Deep inspection knows four kinds of text. No text of an Ingress reaches
// nginx.conf or names a file here, so it is a second lock on a closed door,
// and what it refuses shows that a tenant tries the door. So it may be
// narrow: a directive needs white space behind its name and an end, and file
// names are whole words, "/etc/groups" may be an API. "-" ends a word:
// "/etc/passwd-" is a file too.
var (
	luaDirective  = regexp.MustCompile(`_by_lua(?:_block|_file)?(?:[^0-9A-Za-z_]|$)`)
	fileDirective = regexp.MustCompile(`(?:^|[\s;{}])(?:alias|root)\s[^;]*;`)
	// Elements that are empty or a dot name the same file.
	systemFile  = regexp.MustCompile(`/etc/(?:\.?/)*(?:passwd|shadow|group|nginx|ingress-controller)(?:[^0-9A-Za-z_]|$)`)
	mountedFile = regexp.MustCompile(`/var/(?:\.?/)*run/(?:\.?/)*secrets(?:[^0-9A-Za-z_]|$)|/run/(?:\.?/)*secrets/(?:\.?/)*kubernetes\.io(?:[^0-9A-Za-z_]|$)`)
)

// suspicion says what a text holds that no tenant needs, empty for nothing.
func suspicion(text string) string {
	switch {
	case luaDirective.MatchString(text):
		return "a Lua directive of NGINX"
	case strings.Contains(text, ";") && fileDirective.MatchString(text):
		return "an alias or root directive of NGINX"
	case systemFile.MatchString(text):
		return "the name of a system file below /etc"
	case mountedFile.MatchString(text):
		return "the name of a file with the pod's credentials"
	}
	return ""
}
