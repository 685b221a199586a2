// Package memo remembers the result of parsing an object.
//
// It knows neither objects nor what is parsed out of them.
package memo

// Of is the result of parsing one object. Objects never change, so the same
// object has the same result. The zero value remembers nothing.
type Of[Object comparable, Result any] struct {
	of     Object
	result Result
	known  bool
}

// Get is the result of parsing the object, which may be remembered.
func (m *Of[Object, Result]) Get(of Object, parse func(Object) Result) Result {
	if !m.known || m.of != of {
		*m = Of[Object, Result]{of: of, result: parse(of), known: true}
	}
	return m.result
}
