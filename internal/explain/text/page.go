package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A page is text in two columns.
type page struct {
	text strings.Builder
	// label is printed before the next line.
	label    string
	defaults bool
}

func (p *page) section(label string) { p.label = label }

// line prints a line, and continues it below its beginning if it is too long.
func (p *page) line(format string, args ...any) { p.put(0, format, args...) }

// under prints a line that belongs to the one before.
func (p *page) under(format string, args ...any) { p.put(2, format, args...) }

func (p *page) put(deeper int, format string, args ...any) {
	rest := clean(fmt.Sprintf(format, args...))
	for first := true; first || rest != ""; first = false {
		room := width - indent - deeper
		if !first {
			room -= 2
		}
		var now string
		now, rest = cutLine(rest, room)
		label, more := p.label, ""
		if !first {
			more = "  "
		}
		p.label = ""
		line := fmt.Sprintf("%-*s%*s%s%s", indent, label, deeper, "", more, now)
		p.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// cutLine takes as much as fits into a line, up to a space if there is one.
func cutLine(text string, room int) (line, rest string) {
	if utf8.RuneCountInString(text) <= room {
		return text, ""
	}
	end, columns, space := 0, 0, -1
	for i, c := range text {
		if columns == room {
			end = i
			if c == ' ' {
				space = i
			}
			break
		}
		if c == ' ' {
			space = i
		}
		columns++
	}
	if space > 0 {
		return text[:space], strings.TrimLeft(text[space:], " ")
	}
	return text[:end], text[end:]
}

// clean removes control characters of terminals, and puts all on one line.
func clean(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\n", " "))
}
