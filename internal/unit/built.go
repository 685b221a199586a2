package unit

import (
	"fmt"

	"github.com/headgate/headgate/internal/model"
)

// A Built is what a key names, as package build made it.
type Built struct {
	Key
	// Model is a value of package model: Globals, Certificate, OCSPResponse, Backend,
	// Host, Name, NamePatterns or Stream. It is nil if there is no such unit.
	Model any
	// Certificates are those that a Name or NamePatterns show.
	Certificates []model.Certificate
}

// Of is what build would return for the key of the model.
func Of(m any, certificates ...model.Certificate) Built {
	b := Built{Model: m, Certificates: certificates}
	u, _ := b.Pack()
	b.Key = u.Key
	if b.Kind == Certificate {
		b.Key = DefaultCertificateKey
	}
	return b
}

// Pack packs the unit itself, without its certificates. It reports false if
// there is none.
func (b Built) Pack() (Unit, bool) {
	switch m := b.Model.(type) {
	case nil, model.Stream: // A stream is not pushed.
		return Unit{}, false
	case model.Globals:
		return FromGlobals(m), true
	case model.Certificate:
		return FromCertificate(model.DefaultCertificate, "", m), true
	case model.OCSPResponse:
		return FromOCSPResponse(m), true
	case model.Backend:
		return FromBackend(m), true
	case model.Host:
		return FromHost(m), true
	case model.Name:
		return FromName(m), true
	case model.NamePatterns:
		return FromNamePatterns(m), true
	}
	panic(fmt.Sprintf("unit: a %T is not packed", b.Model))
}
