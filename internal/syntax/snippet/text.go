package snippet

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a text. What is within them takes well under a millisecond to translate.
const (
	maxText       = 16 << 10
	maxTokens     = 2000
	maxDirectives = 500
	maxDepth      = 6
)

// A textError says what is wrong with a text as such.
type textError struct {
	line    int
	message string
}

// words follows the words of a text as NGINX reads them, and finds what crossplane reads
// otherwise.
type words struct {
	line  int
	quote byte
	state state
}

type state int

const (
	between state = iota
	word
	quoted
	behindQuote
	comment
)

func checkLength(text string) *textError {
	if len(text) > maxText {
		return &textError{1, fmt.Sprintf("the text has %d bytes: %d are allowed", len(text), maxText)}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &textError{1, "the text is not UTF-8, or has a zero byte"}
	}
	return nil
}

// checkWords refuses a text that NGINX does not read, or reads otherwise than crossplane.
func checkWords(text string) *textError {
	w := words{line: 1}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\n' {
			w.line++
		}
		if c == '\r' && (i+1 == len(text) || text[i+1] != '\n' || w.state == quoted) {
			return &textError{w.line, "carriage returns are allowed at the end of a line only, and not in quotes"}
		}
		if c == '\\' && w.state != comment {
			if i++; i < len(text) && (text[i] == '\n' || text[i] == '\r') {
				return &textError{w.line, "a backslash at the end of a line is not allowed"}
			}
			if w.state == between {
				w.state = word
			}
			c = 0
		}
		if c == '$' && w.state <= word && i+1 < len(text) && text[i+1] == '{' {
			end := strings.IndexByte(text[i:], '}')
			if end < 0 || !isName(text[i+2:i+end]) {
				return &textError{w.line, "the closing brace of a variable is missing"}
			}
			i, w.state = i+end, word
			continue
		}
		if message := w.next(c); message != "" {
			return &textError{w.line, message}
		}
	}
	return nil
}

// next takes one byte: 0 for one behind a backslash.
func (w *words) next(c byte) string {
	space := c == ' ' || c == '\t' || c == '\r' || c == '\n'
	end := space || c == ';' || c == '{'
	switch {
	case w.state == comment:
		if c == '\n' {
			w.state = between
		}
	case w.state == quoted:
		if c == w.quote {
			w.state = behindQuote
		}
	case w.state == behindQuote && c != ')' && !end:
		return fmt.Sprintf("unexpected %q behind a quoted text: a space is missing", c)
	case end:
		w.state = between
	case w.state == word && c == '}':
		return `unexpected "}": ";" or a space is missing`
	case w.state == word:
	case c == '"' || c == '\'':
		w.state, w.quote = quoted, c
	case c == '#':
		w.state = comment
	case c != '}':
		w.state = word
	}
	return ""
}

func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return text != ""
}

// unescape resolves what NGINX resolves in every word; crossplane leaves it.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\t`, "\t", `\r`, "\r", `\n`, "\n")
