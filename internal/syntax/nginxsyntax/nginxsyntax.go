// Package nginxsyntax reads lines of nginx.conf by NGINX's own rules for words, quotes, comments,
// blocks and Lua. What it takes ends where it seems to end: such text can't close the block that
// it is put into, nor swallow what follows it.
//
// It does not know which directives there are.
package nginxsyntax

import (
	"fmt"
	"strings"
)

// A Directive is one of a text.
type Directive struct {
	Name string
	// Args are the words behind the name, without quotes and backslashes. The last one of a
	// directive with a block of Lua is the Lua.
	Args []string
	// Line is the one of the name, from 1.
	Line int
	// HasBlock is set where braces follow, and Block is what is in them.
	HasBlock bool
	Block    []Directive
}

// An Error is what is wrong with a text.
type Error struct {
	Line   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// maxDepth bounds how deep blocks are nested. NGINX has no such bound, but no more contexts.
const maxDepth = 20

// Parse reads a text. Its error is an *Error, beside which the directives before it are returned.
func Parse(text string) ([]Directive, error) {
	p := parser{text: text, line: 1}
	return p.block(0)
}

// Walk calls f with each directive, and those in blocks.
func Walk(directives []Directive, f func(Directive)) {
	for _, d := range directives {
		f(d)
		Walk(d.Block, f)
	}
}

type parser struct {
	text string
	at   int
	line int
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{p.line, fmt.Sprintf(format, args...)}
}

// block reads directives until the end of their block.
func (p *parser) block(depth int) ([]Directive, error) {
	if depth > maxDepth {
		return nil, p.fail("blocks are nested more than %d deep", maxDepth)
	}
	var list []Directive
	for {
		var d Directive
		words, end, err := p.words(&d.Line)
		if err != nil {
			return list, err
		}
		if len(words) > 0 {
			d.Name, d.Args = words[0], words[1:]
		}
		switch {
		case end == 0:
			if depth > 0 {
				return list, p.fail(`a block is not closed by "}"`)
			}
			return list, nil
		case end == '}':
			if depth == 0 {
				return list, p.fail(`unexpected "}": it would close the block that the text is in`)
			}
			return list, nil
		case end == '{' && strings.HasSuffix(d.Name, "_by_lua_block"):
			lua, err := p.lua()
			if err != nil {
				return list, err
			}
			d.Args = append(d.Args, lua)
		case end == '{':
			d.HasBlock = true
			if d.Block, err = p.block(depth + 1); err != nil {
				return list, err
			}
		}
		list = append(list, d)
	}
}

// words reads the words of a directive up to what ends it: ";", "{", "}" without words, or 0 for
// the end of the text. line gets the line of the first word.
func (p *parser) words(line *int) (words []string, end byte, err error) {
	for {
		p.space()
		if p.at == len(p.text) {
			if len(words) > 0 {
				return nil, 0, p.fail("the directive %q does not end in \";\"", words[0])
			}
			return nil, 0, nil
		}
		switch c := p.text[p.at]; c {
		case ';', '{':
			if len(words) == 0 {
				return nil, 0, p.fail("unexpected %q", string(c))
			}
			p.at++
			return words, c, nil
		case '}':
			if len(words) > 0 {
				return nil, 0, p.fail("unexpected \"}\" in the directive %q", words[0])
			}
			p.at++
			return nil, c, nil
		}
		if len(words) == 0 {
			*line = p.line
		}
		word, err := p.word()
		if err != nil {
			return nil, 0, err
		}
		words = append(words, word)
	}
}

// space passes over spaces and comments.
func (p *parser) space() {
	for ; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\n':
			p.line++
		case ' ', '\t', '\r':
		case '#':
			end := strings.IndexByte(p.text[p.at:], '\n')
			if end < 0 {
				p.at = len(p.text)
				return
			}
			p.at += end - 1
		default:
			return
		}
	}
}

// word reads a word, which begins here.
func (p *parser) word() (string, error) {
	if quote := p.text[p.at]; quote == '"' || quote == '\'' {
		return p.quoted(quote)
	}
	began := p.at
	for variable := false; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '{' && variable:
			// ${name} begins no block.
			variable = false
		case c == '\\':
			if p.at+1 == len(p.text) {
				return "", p.fail(`"\" at the end`)
			}
			if p.at++; p.text[p.at] == '\n' {
				p.line++
			}
			variable = false
		case strings.IndexByte(" \t\r\n;{", c) >= 0:
			return unescape(p.text[began:p.at]), nil
		default:
			variable = c == '$'
		}
	}
	return unescape(p.text[began:]), nil
}

// quoted reads a word in quotes. Behind it, a word must end; ")" alone may follow, in which
// the condition of an "if" ends.
func (p *parser) quoted(quote byte) (string, error) {
	opened := p.line
	began := p.at + 1
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\n':
			p.line++
		case '\\':
			if p.at++; p.at < len(p.text) && p.text[p.at] == '\n' {
				p.line++
			}
		case quote:
			word := unescape(p.text[began:p.at])
			p.at++
			if p.at < len(p.text) && strings.IndexByte(" \t\r\n;{)", p.text[p.at]) < 0 {
				return "", p.fail("unexpected %q behind a quote", string(p.text[p.at]))
			}
			return word, nil
		}
	}
	return "", &Error{opened, fmt.Sprintf("a quote %c is not closed", quote)}
}

// unescape removes the backslashes that NGINX removes.
func unescape(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case '"', '\'', '\\':
				i++
			case 't', 'r', 'n':
				i++
				b.WriteByte(map[byte]byte{'t': '\t', 'r': '\r', 'n': '\n'}[text[i]])
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
