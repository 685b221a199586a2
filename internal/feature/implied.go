package feature

import (
	"fmt"
	"maps"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// An Implied is the value of an annotation that an Ingress does not have, but that another
// of its settings stands for, as a directive in a snippet does.
type Implied struct {
	// Annotation is the name without the prefix. Its setting has the scope of a route.
	Annotation, Text string
	// By is the setting that stands for it, and Where the place in its text, as "line 3:
	// proxy_read_timeout".
	By    AnySetting
	Where string
}

// imply adds what the values of the Ingress stand for on its own routes.
func (p *Parsed) imply(s *Schema) {
	for _, f := range s.implies {
		for _, i := range f(p.values, ScopeRoute) {
			d := s.byAnnotation[s.prefix+i.Annotation]
			if e := p.values.entries[i.Annotation]; e != nil {
				p.add(s, i, Problem{
					Ingress: p.values.origin, Code: finding.Conflict, Message: i.Where + ": the value of the annotation " + i.Annotation + " applies", Effect: "the directive has no effect",
				})
				continue
			}
			p.addImplied(s, d, i, p.values.origin)
		}
	}
}

// ImplyOfHost adds what the oldest Ingress of a host stands for on all of the host's routes of
// its namespace, where the Ingress of the route says nothing else. The owners are not changed.
func (s *Schema) ImplyOfHost(owners []*Parsed) []*Parsed {
	for _, f := range s.implies {
		for _, owner := range owners {
			list := f(owner.Values(), ScopeHost)
			if len(list) == 0 {
				continue
			}
			all := make([]*Parsed, len(owners))
			for i, p := range owners {
				all[i] = p.implied(s, list, owner.values.origin)
			}
			owners = all
			break
		}
	}
	return owners
}

func (p *Parsed) implied(s *Schema, list []Implied, by model.Origin) *Parsed {
	// Implied values may open paths: one namespace does not decide for another one.
	if p.forbidden || p.values.origin.Namespace != by.Namespace {
		return p
	}
	c := *p
	c.values.entries = maps.Clone(p.values.entries)
	c.problems = p.problems[:len(p.problems):len(p.problems)]
	for _, i := range list {
		if c.values.entries[i.Annotation] == nil {
			c.addImplied(s, s.byAnnotation[s.prefix+i.Annotation], i, by)
		}
	}
	return &c
}

// addImplied adds one value. A bad one is reported where it was written.
func (p *Parsed) addImplied(s *Schema, d *schemaSetting, i Implied, by model.Origin) {
	if d == nil || d.Scope != ScopeRoute || d.Refers != NoObject {
		panic(fmt.Sprintf("feature: %s can't be implied", i.Annotation))
	}
	value, err := d.Parse(strings.TrimSpace(i.Text))
	if err != nil {
		code, message := badValue(i.Text, err)
		problem := Problem{Code: code, Message: i.Where + ": " + message, Effect: d.unused()}
		if d.OnInvalid == Deny && (d.When == nil || d.When(p.values)) {
			problem.Effect, problem.Denies = routesDeny, true
		}
		problem.Ingress = by
		p.add(s, i, problem)
		return
	}
	if p.values.entries == nil {
		p.values.entries = map[string]*entry{}
	}
	p.values.entries[i.Annotation] = &entry{origin: by, scope: d.Scope, text: i.Text, value: value, counts: true, implied: &i}
}

func (p *Parsed) add(s *Schema, i Implied, problem Problem) {
	by := i.By.Spec()
	problem.Field = p.values.field(by)
	if d := s.byAnnotation[s.prefix+by.Annotation]; d != nil {
		problem.feature = d.feature
	}
	p.problems = append(p.problems, problem)
}
