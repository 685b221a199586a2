package build

import (
	"fmt"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// A maker makes the unit of its kind that has the name: the model, nil if there
// is no such unit, and the certificates that it shows.
type maker func(b *Builder, name string, v View) (any, []model.Certificate, []finding.Finding)

// makers has a function for each kind that unit.Traits calls built.
var makers = map[unit.Kind]maker{
	unit.Globals: func(b *Builder, _ string, v View) (any, []model.Certificate, []finding.Finding) {
		globals, findings := b.Globals(v)
		return globals, nil, findings
	},
	unit.DefaultCertificate: func(b *Builder, _ string, v View) (any, []model.Certificate, []finding.Finding) {
		certificate, findings := b.DefaultCertificate(v)
		if certificate == nil {
			return nil, nil, findings
		}
		return *certificate, nil, findings
	},
	unit.OCSPResponse: func(b *Builder, certificate string, v View) (any, []model.Certificate, []finding.Finding) {
		response, found, findings := b.OCSPResponse(certificate, v)
		return ifFound(response, found), nil, findings
	},
	unit.Backend: func(b *Builder, key string, v View) (any, []model.Certificate, []finding.Finding) {
		backend, found, findings := b.Backend(key, v)
		return ifFound(backend, found), nil, findings
	},
	unit.Host: func(b *Builder, name string, v View) (any, []model.Certificate, []finding.Finding) {
		host, found, findings := b.Host(name, v)
		return ifFound(host, found), nil, findings
	},
	unit.Name: func(b *Builder, text string, v View) (any, []model.Certificate, []finding.Finding) {
		name, certificate, found, findings := b.Name(text, v)
		if !found || certificate == nil {
			return ifFound(name, found), nil, findings
		}
		return name, []model.Certificate{*certificate}, findings
	},
	unit.Patterns: func(b *Builder, _ string, v View) (any, []model.Certificate, []finding.Finding) {
		patterns, certificates, found, findings := b.NamePatterns(v)
		return ifFound(patterns, found), certificates, findings
	},
	unit.Refusal: func(b *Builder, ingress string, v View) (any, []model.Certificate, []finding.Finding) {
		return nil, nil, b.Refusal(ingress, v)
	},
}

func ifFound[Model any](m Model, found bool) any {
	if !found {
		return nil
	}
	return m
}

// Unit builds what a key of a store names. The key must be of a kind that is
// built by its key (unit.Traits).
func (b *Builder) Unit(key unit.Key, v View) (unit.Built, []finding.Finding) {
	makeUnit, ok := makers[key.Kind]
	if !ok {
		panic(fmt.Sprintf("build: units of the kind %s are not built by their key", key.Kind))
	}
	m, certificates, findings := makeUnit(b, key.Name, v)
	return unit.Built{Key: key, Model: m, Certificates: certificates}, findings
}
