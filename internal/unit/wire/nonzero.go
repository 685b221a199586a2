package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/headgate/headgate/internal/unit"
)

// encode is a value of the model in JSON, without fields that have their zero value: an edge of the release before
// reads what has a field that it does not know, as long as that is not used. So the zero value of a new field must mean
// what was so before there was the field. It leaves no room behind the text, which would stay.
func encode(value any) ([]byte, error) {
	text, err := appendValue(nil, reflect.ValueOf(value))
	return bytes.Clone(text), err
}

// appendValue appends a value. What is in an interface is whole, since other code reads it: it is of a policy.
func appendValue(to []byte, v reflect.Value) ([]byte, error) {
	of := v.Type()
	switch {
	case of.Implements(reflect.TypeFor[json.Marshaler]()), of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
	case of.Kind() == reflect.Struct:
		return appendStruct(to, v)
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 && !v.IsNil():
		return appendSlice(to, v)
	}
	text, err := unit.JSON(v.Interface())
	return append(to, text...), err
}

func appendStruct(to []byte, v reflect.Value) ([]byte, error) {
	to = append(to, '{')
	to, err := appendFields(to, v, len(to))
	return append(to, '}'), err
}

// appendFields appends those of a struct that begins at an index of to.
func appendFields(to []byte, v reflect.Value, begin int) (_ []byte, err error) {
	for field, value := range v.Fields() {
		switch {
		case value.IsZero():
			continue
		case field.Anonymous:
			to, err = appendFields(to, value, begin)
		default:
			if len(to) > begin {
				to = append(to, ',')
			}
			to, err = appendValue(append(strconv.AppendQuote(to, field.Name), ':'), value)
		}
		if err != nil {
			return nil, err
		}
	}
	return to, nil
}

func appendSlice(to []byte, v reflect.Value) (_ []byte, err error) {
	to = append(to, '[')
	for i := range v.Len() {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendValue(to, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), nil
}
