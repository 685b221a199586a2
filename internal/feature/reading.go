package feature

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A From says where a setting's value came from.
type From string

// The places, from the one that counts most.
const (
	FromAnnotation From = "annotation"
	FromKey        From = "key"
	FromDefault    From = "default"
)

// A Reading is a setting that was read, for who asks why.
type Reading struct {
	// Annotation and Key are as the Setting declares them, without a prefix.
	Annotation, Key string
	// Value is what counts, as text: what was written where no short text says
	// what that means, empty where the default is such a value.
	Value string
	From  From
	// Written is the text of the annotation, empty if there is none. It does
	// not count where Refused is set.
	Written string
	Refused bool
	// Denies is set where the bad annotation denies the routes.
	Denies bool
}

// Recording calls read and returns which settings it read by r, each once, in
// the order in which it did.
func (r *Reader) Recording(read func()) []Reading {
	r.recording, r.readings = true, nil
	read()
	readings := r.readings
	for i := range readings {
		r.judge(&readings[i])
	}
	r.recording, r.readings = false, nil
	return readings
}

// note takes down what a setting was found to be.
func (s Setting[T]) note(r *Reader, value T) {
	reading := Reading{Annotation: s.Annotation, Key: s.Key, Value: valueText(value), From: FromDefault}
	if s.Key != "" {
		if _, ok := r.config.values[s.Key]; ok {
			reading.From = FromKey
		}
	}
	if text, ok := r.annotation(s.Annotation); ok && s.Annotation != "" {
		text = s.trim(text)
		reading.Written = cut(text, mostValue)
		if _, err := s.Parse(text); err == nil {
			reading.From, reading.Value = FromAnnotation, cmp.Or(reading.Value, reading.Written)
		}
	}
	if !slices.Contains(r.readings, reading) {
		r.readings = append(r.readings, reading)
	}
}

// judge looks for what was told of an annotation: a feature may refuse it after
// it read it.
func (r *Reader) judge(reading *Reading) {
	for _, p := range r.problems {
		if reading.Annotation != "" && p.Field == r.prefix+reading.Annotation {
			reading.Refused = true
			reading.Denies = reading.Denies || p.Effect == r.denialEffect()
		}
	}
}

// valueText is empty for what no short text says.
func valueText(value any) string {
	switch v := value.(type) {
	case []string:
		return cutList(strings.Join(v, ", "), mostError)
	case fmt.Stringer:
		return cut(v.String(), mostError)
	}
	switch reflect.TypeOf(value).Kind() {
	case reflect.Slice, reflect.Struct, reflect.Map, reflect.Pointer:
		return ""
	}
	return cut(fmt.Sprint(value), mostError)
}
