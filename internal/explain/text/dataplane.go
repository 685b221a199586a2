package text

import (
	"strings"
	"time"

	"github.com/headgate/headgate/internal/explain/report"
)

// writeDataPlanes prints the state of each NGINX.
func writeDataPlanes(p *page, e *report.Explanation) {
	if e.DataPlane != nil {
		writeDataPlane(p, "", *e.DataPlane)
	}
	for _, edge := range e.Edges {
		writeDataPlane(p, "of the edge "+edge.Name+": ", edge.DataPlane)
	}
}

// writeDataPlane prints the versions of units in the shared memory and the workers. whose begins the first line.
func writeDataPlane(p *page, whose string, d report.DataPlane) {
	p.section("NGINX")
	if d.Problem != "" {
		p.line("%s%s", whose, d.Problem)
		return
	}
	state := "serves"
	switch {
	case !d.Loaded:
		state = "is not loaded yet and answers 503"
	case d.Draining:
		state = "serves, and closes connections before a reload"
	}
	p.line("%sgeneration %d %s", whose, d.Generation, state)
	for _, u := range d.Units {
		switch {
		case u.Version == "":
			p.line("%s %s does not exist yet", u.Kind, u.Name)
		case !u.Current:
			p.line("%s %s has another version, %s: a change is in progress", u.Kind, u.Name, u.Version)
		case u.Needs > d.Generation:
			p.line("%s %s needs generation %d", u.Kind, u.Name, u.Needs)
		}
	}
	for _, w := range d.Workers {
		p.line("worker %d of generation %d%s", w.PID, w.Generation, holds(w))
		for _, h := range w.Units {
			if h.Error != "" {
				p.under("%s %s can't be used: %s", h.Kind, h.Name, h.Error)
			}
		}
		for _, e := range w.Ejected {
			p.under("endpoint %s of backend %s is ejected: %s", e.Endpoint, e.Backend, why(e))
		}
	}
}

// why is why an endpoint is ejected, and until when.
func why(e report.Ejected) string {
	text, then := "requests failed in a row", "it is back at"
	if e.Reason == "connect" {
		text, then = "no connection can be made", "the next probe is at"
	}
	text += "; " + then + " " + e.Until.Format(time.TimeOnly) + " UTC"
	if !e.Avoided {
		text += "; it gets requests, since too many endpoints are ejected"
	}
	return text
}

// holds lists the units that a worker has decoded.
func holds(w report.Worker) string {
	if w.Silent {
		return " did not respond"
	}
	var current, old, none []string
	for _, h := range w.Units {
		text := h.Kind + " " + h.Name
		switch {
		case h.Version == "":
			none = append(none, text)
		case h.Current:
			current = append(current, text+" "+h.Version)
		default:
			old = append(old, text+" "+h.Version)
		}
	}
	var parts []string
	for _, part := range []struct {
		what string
		list []string
	}{
		{"current: ", current}, {"older version: ", old}, {"not needed yet: ", none},
	} {
		if len(part.list) > 0 {
			parts = append(parts, part.what+strings.Join(part.list, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}
