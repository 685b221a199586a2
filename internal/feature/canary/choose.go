package canary

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// A verdict is what a header or a cookie decides for a canary.
type verdict int

const (
	undecided verdict = iota
	toCanary
	notToCanary
)

// choose is canary.lua's function choose in Go, without its draw.
func choose(q prediction.Request) prediction.Choice {
	canaries, _ := q.Policy.([]model.Canary)
	c := prediction.Choice{Whens: make([]string, len(canaries)), Shares: make([]float64, len(canaries))}
	left := 1.0
	for i, a := range canaries {
		w, _ := a.When.(when)
		c.Whens[i] = w.String()
		said, by := w.decide(q)
		switch {
		case said == toCanary && c.Backend == "" && q.HasEndpoint(a.Backend):
			c.Backend, c.Why = a.Backend, by+" sends the request to the canary"
		case said == undecided:
			// A share that is drawn for a canary without endpoints does not go to another one.
			c.Shares[i] = min(w.Share, left)
			left -= c.Shares[i]
		case said == notToCanary:
			c.Why = by + " keeps the request away from the canary"
		}
	}
	for i, a := range canaries {
		switch {
		case c.Backend != "" || !q.HasEndpoint(a.Backend):
			c.Shares[i] = 0
		case c.Shares[i] == 1:
			c.Backend, c.Why = a.Backend, "canary-weight sends all requests to the canary"
		}
	}
	return c
}

// decide returns what the header of a request decides, or else the cookie, and
// which of the two did.
func (w when) decide(q prediction.Request) (said verdict, by string) {
	if value, ok := q.Header(w.Header); ok && w.Header != "" {
		if said = w.byHeader(value); said != undecided {
			return said, "the header " + headerName(w.Header)
		}
	}
	if value, ok := q.Cookie(w.Cookie); ok && w.Cookie != "" {
		return word(value), "the cookie " + w.Cookie
	}
	return undecided, ""
}

func (w when) byHeader(value string) verdict {
	switch {
	case w.Value != "":
		return toCanaryIf(value == w.Value)
	case w.Broken:
		return notToCanary
	case w.Pattern != "":
		pattern, err := pcre.Load(w.Pattern, pcre.Options{})
		found := false
		if err == nil {
			found, err = pattern.Match(value)
		}
		if err != nil {
			return notToCanary
		}
		return toCanaryIf(found)
	}
	return word(value)
}

func toCanaryIf(is bool) verdict {
	if is {
		return toCanary
	}
	return undecided
}

func word(value string) verdict {
	switch value {
	case "always":
		return toCanary
	case "never":
		return notToCanary
	}
	return undecided
}

// headerName writes the name of a header as people do.
func headerName(variable string) string { return strings.ReplaceAll(variable, "_", "-") }

// String says in words which requests go to the canary.
func (w when) String() string {
	var parts []string
	if w.Header != "" {
		is := "always"
		switch {
		case w.Value != "":
			is = strconv.Quote(w.Value)
		case w.Broken:
			is = "nothing, because the pattern is invalid"
		case w.Pattern != "":
			is = "a match of " + w.Pattern
		}
		parts = append(parts, fmt.Sprintf("if the header %s is %s", headerName(w.Header), is))
	}
	if w.Cookie != "" {
		parts = append(parts, fmt.Sprintf("if the cookie %s is always", w.Cookie))
	}
	if w.Share > 0 {
		of := "of requests"
		if len(parts) > 0 {
			of = "of other requests"
		}
		parts = append(parts, "for "+strconv.FormatFloat(w.Share*100, 'g', 4, 64)+"% "+of)
	}
	if len(parts) == 0 {
		return "never: neither a header, a cookie nor a weight is set"
	}
	return strings.Join(parts, ", or ")
}
