package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A span is a part of a text.
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }

// A textError is an error in JSON. Its offset is relative to the end of the last
// valid text.
type textError struct {
	offset int64
	reason string
}

// jsonTexts finds the JSON texts that follow each other in a text, up to an
// error.
func jsonTexts(text []byte) ([]span, *textError) {
	if json.Valid(text) {
		from := len(text) - len(bytes.TrimLeft(text, " \t\r\n"))
		return []span{{from, len(text)}}, nil
	}
	var spans []span
	var raw json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		before := dec.InputOffset()
		err := dec.Decode(&raw)
		if err == io.EOF {
			return spans, nil
		}
		if err != nil {
			offset := int64(len(text)) - before
			if at, ok := errors.AsType[*json.SyntaxError](err); ok {
				offset = at.Offset - before
			}
			return spans, &textError{offset, err.Error()}
		}
		to := int(dec.InputOffset())
		spans = append(spans, span{to - len(raw), to})
	}
}

// jsonEnd is the end of the JSON value that begins at from. It must be valid.
func jsonEnd(text []byte, from int) int {
	depth := 0
	for at := from; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(at+1, len(text))
		}
		if depth < 0 {
			return at
		}
	}
	return len(text)
}

// jsonSkip is the offset of the next byte that is neither white space nor a
// separator of values.
func jsonSkip(text []byte, at int) int {
	for at < len(text) && bytes.IndexByte([]byte(" \t\r\n,:"), text[at]) >= 0 {
		at++
	}
	return at
}

// jsonParts finds the values in an array or object, which must be valid; those of
// an object are names and values in turns.
func jsonParts(text []byte, from int) []span {
	var parts []span
	for at := jsonSkip(text, from+1); at < len(text) && text[at] != '}' && text[at] != ']'; {
		to := jsonEnd(text, at)
		parts = append(parts, span{at, to})
		at = jsonSkip(text, to)
	}
	return parts
}
