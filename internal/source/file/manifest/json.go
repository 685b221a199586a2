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

// A part is an element of an array or a member of an object.
type part struct {
	// name is that of a member.
	name string
	// at is an offset in the line on which the part begins.
	at    int
	value span
}

// jsonParts finds the parts of the array or object at an offset, which must be
// valid. Other values have none.
func jsonParts(text []byte, from int) []part {
	dec := json.NewDecoder(bytes.NewReader(text[from:]))
	opening, _ := dec.Token()
	if _, ok := opening.(json.Delim); !ok {
		return nil
	}
	var parts []part
	for dec.More() {
		var p part
		if opening == json.Delim('{') {
			name, _ := dec.Token()
			p.name, _ = name.(string)
			p.at = from + int(dec.InputOffset()) - 1
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return parts
		}
		to := from + int(dec.InputOffset())
		p.value = span{to - len(raw), to}
		if p.at == 0 {
			p.at = p.value.from
		}
		parts = append(parts, p)
	}
	return parts
}
