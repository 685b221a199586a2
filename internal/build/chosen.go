package build

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// Lengths of the administrator's texts in bytes. That of locations is in each of them.
const (
	maxText         = 256 << 10
	maxLocationText = 16 << 10
)

// A Whole tests globals as a whole. Without one, as for lint, only what is wrong with a text by
// itself is found.
type Whole struct {
	Try feature.TryWhole
	// Last are the globals that NGINX took last; false before it took any.
	Last func() (last model.Globals, any bool)
}

// Whole sets what tests globals, before anything is built. It returns b.
func (b *Builder) Whole(w Whole) *Builder {
	b.whole = w
	return b
}

// A chooser finds the globals closest to what the administrator wants that NGINX takes.
type chooser struct {
	whole    Whole
	last     model.Globals
	isKept   bool
	refusals feature.Refusals
}

// choose returns globals whose texts NGINX takes, with those that it does not: instead of each, the
// last good one stays, or there is none. Where not even these fit the other settings, all of the
// last globals stay that are in nginx.conf.
func choose(g model.Globals, passthrough bool, whole Whole) (model.Globals, feature.Refusals) {
	s := chooser{whole: whole, refusals: feature.Refusals{}}
	if whole.Last != nil {
		s.last, s.isKept = whole.Last()
	}
	if g.Process.Snippets.IsZero() {
		return g, nil
	}
	for _, place := range model.Places() {
		if place == model.InTemplate {
			// It is not lines of nginx.conf: see plan.
			continue
		}
		if reason, line := badText(g, place, passthrough); reason != "" {
			s.refuse(&g, place, feature.Refusal{Reason: reason, Line: line})
		}
	}
	if whole.Try == nil {
		return g, s.refusals
	}
	for !g.Process.Snippets.IsZero() {
		err := whole.Try(g)
		if err == nil {
			break
		}
		place, refusal := s.blame(g, err)
		if place == "" {
			return s.keepAll(g, refusal), s.refusals
		}
		s.refuse(&g, place, refusal)
	}
	return g, s.refusals
}

// badText is what is wrong with a text by itself.
func badText(g model.Globals, place model.Place, passthrough bool) (reason string, line int) {
	text := g.Process.Snippets.At(place).String()
	limit := maxText
	if place == model.InLocation {
		limit = maxLocationText
	}
	if len(text) > limit {
		return fmt.Sprintf("%d bytes are too many: must be at most %d", len(text), limit), 0
	}
	parsed, err := nginxsyntax.Parse(text)
	if wrong := (*nginxsyntax.Error)(nil); errors.As(err, &wrong) {
		return wrong.Reason, wrong.Line
	}
	if address := g.Process.ClientAddress; place == model.InServer && (address.Joins() || passthrough && !address.For.IsZero()) {
		if name := routes(parsed); name != "" {
			return fmt.Sprintf("%q has no effect while the addresses of clients come from headers and the PROXY protocol together, or from a header that Headgate joins", name), 0
		}
	}
	return "", 0
}

// refuse puts the last good text instead of one, or none.
func (s *chooser) refuse(g *model.Globals, place model.Place, r feature.Refusal) {
	last := *s.last.Process.Snippets.At(place)
	r.Kept = s.isKept
	*g.Process.Snippets.At(place) = last
	s.refusals[place] = r
}

// open are the places whose texts are not the last ones.
func (s *chooser) open(g model.Globals) []model.Place {
	var list []model.Place
	for _, place := range model.Places() {
		if text := *g.Process.Snippets.At(place); text.String() != "" && text != *s.last.Process.Snippets.At(place) {
			list = append(list, place)
		}
	}
	return list
}

// blame finds the text that is at fault: that in which NGINX finds it, or without which there is
// none, or the first one. It returns none if only texts are left that NGINX has.
func (s *chooser) blame(g model.Globals, err error) (model.Place, feature.Refusal) {
	refusal := feature.Refusal{Reason: err.Error(), Waits: feature.IsUntested(err)}
	open := s.open(g)
	rejected := (*feature.RejectedError)(nil)
	if errors.As(err, &rejected) {
		for _, place := range open {
			if place == rejected.Place {
				refusal.Line = rejected.Line
				return place, refusal
			}
		}
	}
	for _, place := range open {
		without := g
		*without.Process.Snippets.At(place) = *s.last.Process.Snippets.At(place)
		if !refusal.Waits && s.whole.Try(without) == nil {
			return place, refusal
		}
	}
	if len(open) > 0 {
		return open[0], refusal
	}
	return "", refusal
}

// keepAll keeps the last globals in nginx.conf, since the texts that NGINX has don't fit other
// settings that changed.
func (s *chooser) keepAll(g model.Globals, r feature.Refusal) model.Globals {
	bare := g
	bare.Process.Snippets = model.Snippets{}
	if !s.isKept || !r.Waits && s.whole.Try(bare) != nil {
		// Not because of the texts: the test before the reload says so.
		return g
	}
	for _, place := range model.Places() {
		if g.Process.Snippets.At(place).String() != "" {
			r.Kept = true
			s.refusals[place] = r
		}
	}
	g.Process, g.Default, g.Files = s.last.Process, s.last.Default, s.last.Files
	return g
}

// routes is the first directive that decides about requests before they are routed, empty if there
// is none.
func routes(parsed []nginxsyntax.Directive) string {
	for _, d := range parsed {
		switch d.Name {
		case "if", "return", "rewrite", "set", "break", "location":
			return d.Name
		}
	}
	return ""
}
