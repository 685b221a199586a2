// Package wire is units on their way from where they are built to where NGINX is: what
// package build made, as bytes with a version.
//
// Equal models give equal bytes, wherever they were built. What several units show or refer
// to, certificates and contents, is sent once, by its hash.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/form"
	"github.com/headgate/headgate/internal/unit"
)

// A Resource is a unit, or a certificate or content that units refer to.
type Resource struct {
	unit.Key
	// Version is a hash of Bytes, in lower-case hexadecimal digits.
	Version string
	// Bytes are JSON, and those of a content the content itself.
	Bytes []byte
	// Refers are the certificates and contents that it is of no use without.
	Refers []unit.Key
	// Needs are units of other namespaces that serve it: backends, and OCSP responses. Not all of them need be there.
	Needs []unit.Key
}

// Encode makes resources of what was built: the unit itself first, and then what it refers
// to. There is none if there is no such unit.
func Encode(b unit.Built) ([]Resource, error) {
	e := encoder{}
	switch m := b.Model.(type) {
	case nil:
		return nil, nil
	case model.Host:
		b.Model = e.host(m)
	}
	inner, err := encode(b.Model)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", b.Key, err)
	}
	body := encoded{Model: inner}
	for _, c := range b.Certificates {
		key := unit.Certificate.Key(c.Hash)
		body.Certificates = append(body.Certificates, shown{c.Hash, c.Secret})
		// Several Secrets may have the same one, and their names are for those who show it.
		c.Secret = ""
		text, err := encode(c)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		e.add(key, text)
	}
	text, err := encode(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", b.Key, err)
	}
	first := resource(b.Key, text)
	for _, r := range e.attached {
		first.Refers = append(first.Refers, r.Key)
	}
	first.Needs = needs(b, text)
	return append([]Resource{first}, e.attached...), nil
}

// encoded is a unit in JSON.
type encoded struct {
	Model        json.RawMessage
	Certificates []shown
}

// shown is a certificate that a unit shows, and the Secret that it comes from.
type shown struct{ Hash, Secret string }

// An encoder collects what a unit refers to.
type encoder struct{ attached []Resource }

func (e *encoder) add(key unit.Key, text []byte) {
	if !slices.ContainsFunc(e.attached, func(r Resource) bool { return r.Key == key }) {
		e.attached = append(e.attached, resource(key, text))
	}
}

// host leaves the bytes of contents out.
func (e *encoder) host(h model.Host) model.Host {
	h.Contents = e.contents(h.Contents)
	h.Routes = slices.Clone(h.Routes)
	for i := range h.Routes {
		h.Routes[i].Contents = e.contents(h.Routes[i].Contents)
		h.Routes[i].Files = e.contents(h.Routes[i].Files)
	}
	return h
}

func (e *encoder) contents(list []model.Content) []model.Content {
	if len(list) == 0 {
		return list
	}
	names := make([]model.Content, len(list))
	for i, c := range list {
		e.add(unit.Content.Key(c.Name), c.Bytes)
		names[i].Name = c.Name
	}
	return names
}

func resource(key unit.Key, text []byte) Resource {
	return Resource{Key: key, Version: unit.VersionOf(text, ""), Bytes: text}
}

// ErrMissing means that something is not there which a resource refers to.
var ErrMissing = errors.New("not received yet")

// A Finder gives the bytes of what resources refer to, false if they are not there.
type Finder func(unit.Key) ([]byte, bool)

// Decode makes of a unit what Encode was given. The values of its policies are
// [model.Raw]. It fails with ErrMissing if find lacks something.
func Decode(key unit.Key, text []byte, find Finder) (unit.Built, error) {
	b, err := decodeModel(key, text, find)
	if err != nil {
		return unit.Built{}, fmt.Errorf("decode %s: %w", key, err)
	}
	return b, nil
}

func decodeModel(key unit.Key, text []byte, find Finder) (unit.Built, error) {
	switch key.Kind {
	case unit.Globals:
		return decodeAs[model.Globals](key, text, find)
	case unit.DefaultCertificate:
		return decodeAs[model.Certificate](key, text, find)
	case unit.OCSPResponse:
		return decodeAs[model.OCSPResponse](key, text, find)
	case unit.Backend:
		return decodeAs[model.Backend](key, text, find)
	case unit.Name:
		return decodeAs[model.Name](key, text, find)
	case unit.Patterns:
		return decodeAs[model.NamePatterns](key, text, find)
	case unit.Stream:
		return decodeAs[model.Stream](key, text, find)
	case unit.Host:
		b, err := decodeAs[model.Host](key, text, find)
		if err != nil {
			return b, err
		}
		h := b.Model.(model.Host)
		if err := findContents(&h, find); err != nil {
			return b, err
		}
		b.Model = h
		return b, nil
	}
	return unit.Built{}, errors.New("no unit of this kind is sent")
}

func decodeAs[M any](key unit.Key, text []byte, find Finder) (unit.Built, error) {
	var read struct {
		Model        M
		Certificates []shown
	}
	if err := form.Strictly(text, &read); err != nil {
		return unit.Built{}, err
	}
	b := unit.Built{Key: key, Model: read.Model}
	for _, s := range read.Certificates {
		key := unit.Certificate.Key(s.Hash)
		text, ok := find(key)
		if !ok {
			return b, fmt.Errorf("%s: %w", key, ErrMissing)
		}
		var c model.Certificate
		if err := form.Strictly(text, &c); err != nil {
			return b, fmt.Errorf("%s: %w", key, err)
		}
		c.Secret = s.Secret
		b.Certificates = append(b.Certificates, c)
	}
	return b, nil
}

func findContents(h *model.Host, find Finder) error {
	lists := [][]model.Content{h.Contents}
	for _, r := range h.Routes {
		lists = append(lists, r.Contents, r.Files)
	}
	for _, list := range lists {
		for i, c := range list {
			key := unit.Content.Key(c.Name)
			text, ok := find(key)
			if !ok {
				return fmt.Errorf("%s: %w", key, ErrMissing)
			}
			list[i].Bytes = text
		}
	}
	return nil
}
