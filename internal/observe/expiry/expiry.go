// Package expiry follows the certificates that are served and reports when they
// expire: in findings, from ten days before, and in metrics.
//
// Only this package compares certificates with the clock: an expired
// certificate is served like any other, so the model does not depend on it. It
// must not know why a name has a certificate.
package expiry

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
)

const (
	// ahead is how long before its end a certificate gets a finding.
	ahead = 10 * 24 * time.Hour
	// longest is the longest time between two looks at the clock: it may be set,
	// and timers stand still while a machine sleeps.
	longest = time.Hour
)

// A Watch follows the certificates of names. Its methods may be called from
// several goroutines.
type Watch struct {
	class string
	enter func([]tracker.Part)
	now   func() time.Time

	mu sync.Mutex
	// names has the certificate of each name, certificates has each once.
	names        map[string]id
	certificates map[id]*certificate
	// changed are the certificates that came or went since the last check.
	changed sets.Set[id]
	signal  chan struct{}
}

// An id is one certificate in one Secret, and the owner of its findings.
type id struct{ secret, hash string }

// A certificate is one that is served.
type certificate struct {
	notAfter time.Time
	// identifier has the format of ingress-nginx.
	identifier, serial, organization, issuer, algorithm string
	// names is how many names have it.
	names int
}

// New makes an empty Watch. Class is that of the controller, for metrics; enter
// receives the findings.
func New(class string, enter func([]tracker.Part)) *Watch {
	return &Watch{
		class: class, enter: enter, now: time.Now,
		names: map[string]id{}, certificates: map[id]*certificate{}, changed: sets.Set[id]{}, signal: make(chan struct{}, 1),
	}
}

// Show sets the certificate of a name; nil for none, or for one that is not from
// a Secret.
func (w *Watch) Show(name string, c *model.Certificate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, shown := w.names[name]
	var now id
	if c != nil && c.Secret != "" {
		now = id{c.Secret, c.Hash}
	}
	if was == now {
		return
	}
	if shown {
		delete(w.names, name)
		if w.certificates[was].names--; w.certificates[was].names == 0 {
			delete(w.certificates, was)
			w.change(was)
		}
	}
	if now == (id{}) {
		return
	}
	w.names[name] = now
	if w.certificates[now] == nil {
		w.certificates[now] = parse(c.Chain)
		w.change(now)
	}
	w.certificates[now].names++
}

func (w *Watch) change(of id) {
	w.changed.Insert(of)
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Run enters findings when they are due, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	next := w.now()
	for {
		var parts []tracker.Part
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
			var due time.Time
			if parts, due = w.look(false); due.Before(next) {
				next = due
			}
		case <-time.After(next.Sub(w.now())):
			parts, next = w.look(true)
		}
		if len(parts) > 0 {
			w.enter(parts)
		}
	}
}

// look returns the findings of all certificates or of those that came, none for
// those that went, and when to look again.
func (w *Watch) look(all bool) (parts []tracker.Part, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	next = now.Add(longest)
	if all {
		for of := range w.certificates {
			w.changed.Insert(of)
		}
	}
	for of := range w.changed {
		part := tracker.Part{Owner: of}
		if c := w.certificates[of]; c != nil {
			part.Findings = c.findings(of, now)
			next = c.due(now, next)
		}
		parts = append(parts, part)
	}
	clear(w.changed)
	return parts, next
}

// due is when the certificate has to be looked at again, or next if that is
// earlier.
func (c *certificate) due(now, next time.Time) time.Time {
	for _, at := range []time.Time{c.notAfter.Add(-ahead), c.notAfter} {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	return next
}

func (c *certificate) findings(of id, now time.Time) []finding.Finding {
	f := finding.Finding{Object: "secret/" + of.secret, Field: "tls.crt", Code: finding.Expires}
	end := c.notAfter.UTC().Format(time.RFC3339)
	switch {
	case c.notAfter.IsZero() || now.Before(c.notAfter.Add(-ahead)):
		return nil
	case now.Before(c.notAfter):
		f.Message, f.Effect = "the certificate expires on "+end, "clients will reject it then"
	default:
		f.Message, f.Effect = "the certificate expired on "+end, "it is still served, and clients reject it"
	}
	return []finding.Finding{f}
}
