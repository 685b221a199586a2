package feature

import (
	"reflect"
	"strings"
)

// A Setting declares an annotation, a ConfigMap key, or an annotation together
// with the key that gives its default.
type Setting[T any] struct {
	// Annotation is the annotation's name without the prefix, empty for a
	// setting that has only a key.
	Annotation string
	// Key is the ConfigMap key, empty for a setting that has only an
	// annotation.
	Key string
	// Default holds where neither is set.
	Default T
	// Parse reads a value. Its error says what is allowed.
	Parse func(string) (T, error)
	// OnInvalid says what a bad value of the annotation does, or of the key where
	// that counts.
	OnInvalid OnInvalid
	Risk      Risk
	// Refers says that the value is the name of such an object, whose data
	// SecretOf or ConfigMapOf gives. T is then ObjectName. The key can't refer.
	Refers ObjectKind
	// AnyNamespace lets the object be of any namespace, whatever the key
	// allow-cross-namespace-resources says.
	AnyNamespace bool
	// Doc says what the setting does, for the reference.
	Doc string
}

// Declared is a Setting of any type.
type Declared interface {
	Declaration() Declaration
	// Equal tells whether the setting has the same value for both readers.
	Equal(a, b *Reader) bool
	// Check parses a value.
	Check(text string) (any, error)
	// refer is the object that the setting refers to, false if there is none.
	refer(*Reader) (Reference, bool)
}

// A Declaration is what a setting says of itself.
type Declaration struct {
	Annotation, Key, Doc string
	// Default is what Check would return for it.
	Default   any
	Risk      Risk
	OnInvalid OnInvalid
	Refers    ObjectKind
}

// Declaration describes the setting.
func (s Setting[T]) Declaration() Declaration {
	return Declaration{
		Annotation: s.Annotation, Key: s.Key, Doc: s.Doc, Default: s.Default,
		Risk: s.Risk, OnInvalid: s.OnInvalid, Refers: s.Refers,
	}
}

// Equal tells whether the setting has the same value for both readers.
func (s Setting[T]) Equal(a, b *Reader) bool { return reflect.DeepEqual(s.Get(a), s.Get(b)) }

func (s Setting[T]) refer(r *Reader) (Reference, bool) {
	if s.Refers == NoObject {
		return Reference{}, false
	}
	name, ok := any(s.Get(r)).(ObjectName)
	return Reference{s.Refers, name.in(r.origin.Namespace)}, ok && name.Name != ""
}

// Check parses a value.
func (s Setting[T]) Check(text string) (any, error) { return s.Parse(text) }

// Get is the value that holds on the Ingress that r reads: its annotation,
// else the ConfigMap's key, else the default. A bad annotation is noted in r.
// All who ask r for the annotation get the same value, and must not change what
// it points to.
func (s Setting[T]) Get(r *Reader) T {
	value := s.get(r)
	if r.recording {
		s.note(r, value)
	}
	return value
}

func (s Setting[T]) get(r *Reader) T {
	if s.Annotation == "" {
		return s.otherwise(r)
	}
	if value, ok := r.values[s.Annotation].(T); ok {
		return value
	}
	text, ok := r.annotation(s.Annotation)
	if !ok {
		return s.otherwise(r)
	}
	text = s.trim(text)
	value, err := s.Parse(text)
	if err != nil {
		code, message := badCode(text, err)
		r.note(r.prefix+s.Annotation, code, message, s.OnInvalid)
		value = s.otherwise(r)
	}
	r.remember(s.Annotation, value)
	return value
}

// trim takes blanks from around a text, but not from around true and false:
// there the predecessor takes none.
func (s Setting[T]) trim(text string) string {
	if _, is := any(s.Default).(bool); is {
		return text
	}
	return strings.TrimSpace(text)
}

// otherwise is the value that holds without the annotation.
func (s Setting[T]) otherwise(r *Reader) T {
	if s.Key != "" {
		if value, ok := r.config.values[s.Key]; ok {
			return value.(T)
		}
		if r.config.denies[s.Key] {
			r.denied = true
		}
	}
	return s.Default
}
