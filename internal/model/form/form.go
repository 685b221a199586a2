// Package form reads values of the model from JSON, and refuses what is not known here: it may be
// a guard.
package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Text reads a value from its text.
func Text[T any](into *T, read func(string) (T, error), text []byte) (err error) {
	*into, err = read(string(text))
	return err
}

// Number reads one of so many values of an enumeration, which begins at 0.
func Number[T ~int](into *T, values int, text []byte) error {
	number, err := strconv.Atoi(string(text))
	if err != nil || number < 0 || number >= values {
		return fmt.Errorf("%.60q: must be a number from 0 to %d", text, values-1)
	}
	*into = T(number)
	return nil
}

// Strictly reads JSON without fields that are not known.
func Strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
