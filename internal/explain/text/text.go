// Package text prints an explanation as text.
package text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/explain/report"
)

// width is the maximum number of columns, indent that of the labels.
const (
	width  = 100
	indent = 13
)

// Write prints an explanation, in lines of at most 100 columns, without control
// characters of terminals. Settings with default values are listed only if
// defaults is set.
func Write(w io.Writer, e *report.Explanation, defaults bool) error {
	p := &page{defaults: defaults}
	writeRequest(p, e)
	writeName(p, e)
	writeRoute(p, e)
	writePolicies(p, e)
	writeBackends(p, e)
	writeCertificate(p, e)
	writeFindings(p, e)
	writeDataPlanes(p, e)
	_, err := io.WriteString(w, p.text.String())
	return err
}

func writeRequest(p *page, e *report.Explanation) {
	r := e.Request
	p.section("Request")
	p.line("%s %s", r.Method, r.URL)
	if r.Host != "" && r.Path != "" {
		p.line("for the name %s and the path %s", r.Host, r.Path)
	}
	if r.From != "" {
		p.line("from %s", r.From)
	}
	if c := e.Client; c != nil {
		p.section("Client")
		who := strings.TrimSpace(c.Address + " " + c.Scheme)
		if who != "" {
			p.line("%s", who)
		}
		p.line("%s", c.Why)
	}
	p.section("Answer")
	answers := e.Answers
	if len(answers) == 2 && sameAnswer(answers[0], answers[1]) {
		answers = []report.Answer{answers[0]}
		answers[0].Scheme = "both"
	}
	for _, a := range answers {
		switch {
		case a.Ends:
			p.line("%-6s none: the TLS handshake fails", a.Scheme)
		case a.Backend != "":
			p.line("%-6s backend %s, %s", a.Scheme, strings.TrimSuffix(a.Backend, "/"), count(a.Endpoints, "endpoint"))
		case a.Location != "":
			p.line("%-6s %d to %s", a.Scheme, a.Status, a.Location)
		default:
			p.line("%-6s %d", a.Scheme, a.Status)
		}
		p.put(7, "%s", a.Why)
	}
}

func sameAnswer(a, b report.Answer) bool {
	a.Scheme, b.Scheme = "", ""
	return a == b
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func writeName(p *page, e *report.Explanation) {
	if e.Name == nil {
		return
	}
	n := e.Name
	p.section("Name")
	p.line("%s: %s", n.Name, n.Why)
	if n.Host != n.Name {
		p.line("its requests go to host %s", n.Host)
	}
	if len(n.Ingresses) > 0 {
		p.line("%s", strings.Join(n.Ingresses, ", "))
	}
	if n.Owner != nil {
		p.line("%s", n.Owner.Why)
	}
	p.section("  refused")
	for _, c := range n.Refused {
		p.line("%s (%s) of %s", c.Name, c.By, strings.Join(c.Ingresses, ", "))
		p.under("%s", c.Why)
	}
	p.section("  not by")
	for _, c := range n.Lost {
		p.line("%s (%s) of %s", c.Name, c.By, strings.Join(c.Ingresses, ", "))
		p.under("%s", c.Why)
	}
	p.section("  not served")
	for _, u := range e.Unserved {
		p.line("%s", u.Ingress)
		p.under("%s", u.Why)
	}
	p.section("")
}

func rule(r report.Rule) string {
	text := r.Matches
	if r.Backend != "" {
		text += " -> " + r.Backend
	}
	return text
}

func source(r report.Rule) string {
	if r.Ingress == "" {
		return "no rule"
	}
	text := r.Ingress
	if r.Field != "" {
		text += " " + r.Field
	}
	if r.PathType != "" {
		text += ": " + r.PathType + " " + r.Path
	}
	return text
}

func writeRoute(p *page, e *report.Explanation) {
	if e.Route != nil {
		p.section("Route")
		p.line("%s", rule(e.Route.Rule))
		p.line("%s", source(e.Route.Rule))
		p.line("%s", e.Route.Why)
	}
	p.section("  patterns")
	for _, c := range e.Patterns {
		p.line("all paths of the host are regular expressions, case-insensitive and anchored at the start: "+
			"%s has %s %q (path %s)", c.Ingress, c.Setting, c.Value, c.Path)
	}
	if e.Plain != nil {
		p.line("otherwise, %s of %s would have won", e.Plain.Matches, source(*e.Plain))
	}
	p.section("  lost")
	for _, l := range e.Lost {
		p.line("%s", rule(l.Rule))
		p.under("%s", source(l.Rule))
		switch {
		case l.Outcome == report.Missed:
			p.under("does not match: %s", l.Why)
		case l.Outcome == report.Rejected && l.To != "":
			p.under("not served, lost to %s: %s", l.To, l.Why)
		case l.Outcome == report.Rejected:
			p.under("not served: %s", l.Why)
		case l.To != "" && l.To != l.Ingress:
			p.under("lost to %s: %s", l.To, l.Why)
		default:
			p.under("%s", l.Why)
		}
	}
	if e.More > 0 {
		p.line("and %d more", e.More)
	}
	p.section("")
}

func writePolicies(p *page, e *report.Explanation) {
	if e.Route == nil && len(e.Policies) == 0 {
		return
	}
	p.section("Settings")
	p.policies(e.Policies)
	if pr := e.Profile; pr != nil {
		p.section("Profile")
		if pr.Default {
			p.line("%s, as for routes without annotations", pr.Name)
		} else {
			p.line("%s, which differs from that of routes without annotations:", pr.Name)
		}
		for _, d := range pr.Differs {
			p.under("%s %s instead of %s", d.Setting, d.Value, d.Default)
		}
	}
}

// policies lists the settings that have a value of an object, then the defaults.
func (p *page) policies(list []report.Policy) {
	var usual []string
	set := false
	for _, s := range list {
		set = set || s.From != "default" || s.Rejected
		switch {
		case s.Denies && s.From == "key":
			p.line("%s denies the route", s.Setting)
			p.under("the key of %s is rejected", s.Object)
		case s.Denies:
			p.line("%s denies the route", s.Setting)
			p.under("the annotation %q of %s is rejected", s.Written, s.Object)
		case s.Rejected:
			p.line("%s %s", s.Setting, s.Value)
			counts := "the " + s.From + " is used"
			if s.From == "annotation" {
				counts = "see the findings"
			}
			p.under("the annotation %q of %s is rejected: %s", s.Written, s.Object, counts)
		case s.From == "annotation" && s.By != "":
			p.line("%s %s", s.Setting, s.Value)
			p.under("%s of the annotation %s of %s%s", s.Where, s.By, s.Object, idle(s))
		case s.From == "annotation":
			p.line("%s %s", s.Setting, s.Value)
			p.under("annotation %q of %s%s", s.Written, s.Object, idle(s))
		case s.From == "key":
			p.line("%s %s", s.Setting, s.Value)
			p.under("key of %s", s.Object)
		case s.Value == "":
		default:
			usual = append(usual, s.Setting+" "+s.Value)
		}
	}
	switch {
	case len(usual) > 0 && p.defaults:
		p.line("defaults: %s", strings.Join(usual, ", "))
	case len(usual) > 0 && !set:
		p.line("all have their defaults")
	case len(usual) > 0:
		p.line("all others have their defaults")
	}
}

func idle(s report.Policy) string {
	if s.Idle == "" {
		return ""
	}
	return "; it has no part in this request: " + s.Idle
}

func writeBackends(p *page, e *report.Explanation) {
	labels := map[string]string{report.OwnBackend: "Backend", report.FallbackBackend: "Fallback", report.DefaultBackend: "Default", report.CanaryBackend: "Canary", report.ErrorBackend: "Errors"}
	for _, b := range e.Backends {
		p.section(labels[b.Role])
		p.line("%s: %s", strings.TrimSuffix(b.Key, "/"), b.Service)
		if b.Ingress != "" {
			p.line("%s %s", b.Ingress, b.Field)
		}
		if b.When != "" {
			p.line("used %s", b.When)
		}
		if b.Why != "" {
			p.line("no endpoint is used: %s", b.Why)
		}
		listed := map[string]bool{}
		for _, at := range b.Endpoints {
			listed[at.Address] = true
			switch {
			case !at.Used:
				p.line("  %s %s, not used: %s", at.Address, at.State, at.Why)
			case at.Why != "":
				p.line("  %s %s, used though %s", at.Address, at.State, at.Why)
			default:
				p.line("  %s %s", at.Address, at.State)
			}
		}
		for _, at := range b.Used {
			if !listed[at] {
				p.line("  %s", at)
			}
		}
		p.policies(b.Settings)
	}
}

func writeCertificate(p *page, e *report.Explanation) {
	c := e.Certificate
	if c == nil {
		return
	}
	p.section("Certificate")
	switch {
	case !c.Default && c.Secret == "":
		p.line("none: %s", c.Why)
	case !c.Default:
		p.line("%s: %s", c.Secret, c.Why)
	case c.DefaultSecret != "":
		p.line("the default certificate: %s", c.Why)
		p.line("from %s", c.DefaultSecret)
	default:
		p.line("the default certificate: %s", c.Why)
	}
	if c.Ingress != "" {
		p.line("%s %s", c.Ingress, c.Field)
	}
	if len(c.Names) > 0 {
		p.line("for %s", strings.Join(c.Names, ", "))
	}
	if c.NotBefore != nil && c.NotAfter != nil {
		p.line("valid from %s to %s", moment(*c.NotBefore), moment(*c.NotAfter))
	}
	if c.Problem != "" {
		p.line("clients may reject it: %s", c.Problem)
	}
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func writeFindings(p *page, e *report.Explanation) {
	p.section("Findings")
	if len(e.Findings) == 0 {
		p.line("none")
	}
	for _, f := range e.Findings {
		p.line("%s %s", f.Object, f.Field)
		first, more, _ := strings.Cut(f.Message, "\n")
		p.under("%s: %s", f.Code, first)
		for line := range strings.Lines(more) {
			p.put(4, "%s", strings.TrimRight(line, "\n"))
		}
		p.under("%s", f.Effect)
	}
	if e.Elsewhere > 0 {
		p.line("and %d more of other files, which may be related to this request", e.Elsewhere)
	}
}
