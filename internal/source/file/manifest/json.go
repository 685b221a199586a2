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

// A part is an element of an array or a member of an object.
type part struct {
	// name is that of a member.
	name string
	// at is where the part begins.
	at    int
	value span
}

// jsonParts finds the parts of the array or object at an offset, which must be
// valid. Other values have none.
func jsonParts(text []byte, from int) []part {
	if from >= len(text) || text[from] != '{' && text[from] != '[' {
		return nil
	}
	var parts []part
	for at := jsonSkip(text, from+1); at < len(text) && text[at] != '}' && text[at] != ']'; {
		p := part{at: at}
		if text[from] == '{' {
			end := jsonEnd(text, at)
			// A name that is valid JSON can't fail to become a string.
			_ = json.Unmarshal(text[at:end], &p.name)
			at = jsonSkip(text, end)
		}
		p.value = span{at, jsonEnd(text, at)}
		parts = append(parts, p)
		at = jsonSkip(text, p.value.to)
	}
	return parts
}
