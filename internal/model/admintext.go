package model

import "strings"

// A Place is where text of the administrator stands in nginx.conf: the key that has it.
type Place string

// The places: outside of all blocks, in the http block, in its server, and in each location of a
// profile.
const (
	InMain     Place = "main-snippet"
	InHTTP     Place = "http-snippet"
	InServer   Place = "server-snippet"
	InLocation Place = "location-snippet"
	// InTemplate is the whole of nginx.conf: a template instead of the built-in one.
	InTemplate Place = "template"
)

// Places are all places, in the order of nginx.conf.
func Places() []Place { return []Place{InMain, InHTTP, InServer, InLocation, InTemplate} }

// Snippets are the administrator's own texts by their place: lines of nginx.conf, and its template.
type Snippets struct{ Main, HTTP, Server, Location, Template AdminText }

// At is the text at a place.
func (s *Snippets) At(place Place) *AdminText {
	return map[Place]*AdminText{InMain: &s.Main, InHTTP: &s.HTTP, InServer: &s.Server, InLocation: &s.Location, InTemplate: &s.Template}[place]
}

// IsZero reports whether there is no text at all.
func (s Snippets) IsZero() bool { return s == Snippets{} }

// MainLines and the others are the text at a place between two comments, empty if there is none.
func (s Snippets) MainLines() string { return s.lines(InMain) }

// HTTPLines are those of the http block.
func (s Snippets) HTTPLines() string { return s.lines(InHTTP) }

// ServerLines are those of the server.
func (s Snippets) ServerLines() string { return s.lines(InServer) }

// LocationLines are those of each location of a profile.
func (s Snippets) LocationLines() string { return s.lines(InLocation) }

func (s Snippets) lines(place Place) string {
	text := s.At(place).text
	if text == "" {
		return ""
	}
	return place.begin() + "\n" + strings.TrimSuffix(text, "\n") + "\n" + place.end()
}

func (p Place) begin() string { return "# " + string(p) + " of the ConfigMap" }
func (p Place) end() string   { return "# The end of " + string(p) }

// PlaceAt finds the text that a line of nginx.conf is in, and its line there. Both count from 1.
func PlaceAt(conf string, line int) (place Place, inText int, found bool) {
	lines := strings.Split(conf, "\n")
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		for _, p := range Places() {
			switch lines[i] {
			case p.begin():
				return p, line - 1 - i, line-1 > i
			case p.end():
				return "", 0, false
			}
		}
	}
	return "", 0, false
}

// AdminText goes into nginx.conf as it stands. Only settings that have a key alone,
// of the scope process, may be of this type.
type AdminText struct{ text string }

// NewAdminText takes any text: NGINX tests it.
func NewAdminText(text string) (AdminText, error) { return AdminText{text}, nil }

func (a AdminText) String() string { return a.text }

// An AdminName is a name in the administrator's text: letters, digits and underscores.
type AdminName struct{ text string }

// NewAdminName is false for a text of another form.
func NewAdminName(text string) (AdminName, bool) {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return AdminName{}, false
	}
	return AdminName{text}, true
}

func (n AdminName) String() string { return n.text }
