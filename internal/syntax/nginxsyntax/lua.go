package nginxsyntax

import (
	"regexp"
	"strings"
)

// longBracket opens a string or a comment of Lua that may have several lines.
var longBracket = regexp.MustCompile(`^\[=*\[`)

// lua reads Lua up to the brace that closes its block.
func (p *parser) lua() (string, error) {
	opened, began := p.line, p.at
	for depth := 1; p.at < len(p.text); {
		rest := p.text[p.at:]
		skip := 1
		switch c := rest[0]; {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				p.at++
				return p.text[began : p.at-1], nil
			}
		case c == '"' || c == '\'':
			skip = luaString(rest)
		case strings.HasPrefix(rest, "--"):
			if skip = longEnd(rest[2:], 2); skip < 0 && longBracket.FindString(rest[2:]) == "" {
				skip = strings.IndexByte(rest, '\n')
			}
		case c == '[' && longBracket.FindString(rest) != "":
			skip = longEnd(rest, 0)
		}
		if skip < 0 {
			break
		}
		p.line += strings.Count(rest[:skip], "\n")
		p.at += skip
	}
	return "", &Error{opened, `a block of Lua is not closed by "}"`}
}

// luaString is the length of the string in quotes at the beginning of a text, -1 if it has no end.
func luaString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return -1
}

// longEnd is where the long bracket at the beginning of a text ends, and what is before it; -1 if
// there is none, or no end.
func longEnd(text string, before int) int {
	open := longBracket.FindString(text)
	if open == "" {
		return -1
	}
	end := strings.Index(text, strings.ReplaceAll(open, "[", "]"))
	if end < 0 {
		return -1
	}
	return before + end + len(open)
}
