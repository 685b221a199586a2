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

// A Map remembers one result for each key. The zero value is empty.
type Map[Key, Object comparable, Result any] struct {
	// Most is how many there may be: one more drops all others. 0 means no limit.
	Most int
	of   map[Key]*Of[Object, Result]
}

// Get is the result of parsing the newest object of the key, which may be
// remembered.
func (m *Map[Key, Object, Result]) Get(key Key, of Object, parse func(Object) Result) Result {
	known := m.of[key]
	if known == nil {
		if m.of == nil || len(m.of) == m.Most {
			m.of = map[Key]*Of[Object, Result]{}
		}
		known = &Of[Object, Result]{}
		m.of[key] = known
	}
	return known.Get(of, parse)
}

// Forget drops the result of a key.
func (m *Map[Key, Object, Result]) Forget(key Key) { delete(m.of, key) }
