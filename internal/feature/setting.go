package feature

import (
	"fmt"
	"reflect"
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
	// OnInvalid says what a bad value of the annotation does. A bad value of
	// the key always gives the default.
	OnInvalid OnInvalid
	Risk      Risk
	// Doc says what the setting does, for the reference.
	Doc string
}

// Declared is a Setting of any type.
type Declared interface {
	Declaration() Declaration
	// Equal tells whether the setting has the same value for both readers.
	Equal(a, b *Reader) bool
	// check parses a value and returns it for a Config.
	check(string) (any, error)
}

// A Declaration is what the reference tells of a setting.
type Declaration struct {
	Annotation, Key, Default, Doc string
	Risk                          Risk
	OnInvalid                     OnInvalid
}

// Declaration describes the setting.
func (s Setting[T]) Declaration() Declaration {
	return Declaration{
		Annotation: s.Annotation, Key: s.Key, Default: fmt.Sprint(s.Default), Doc: s.Doc,
		Risk: s.Risk, OnInvalid: s.OnInvalid,
	}
}

// Equal tells whether the setting has the same value for both readers.
func (s Setting[T]) Equal(a, b *Reader) bool { return reflect.DeepEqual(s.Get(a), s.Get(b)) }

func (s Setting[T]) check(text string) (any, error) { return s.Parse(text) }

// Get is the value that holds on the Ingress that r reads: its annotation,
// else the ConfigMap's key, else the default. A bad annotation is noted in r.
// All who ask r for the annotation get the same value, and must not change what
// it points to.
func (s Setting[T]) Get(r *Reader) T {
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
	value, err := s.Parse(text)
	if err != nil {
		r.invalid(s.Annotation, text, err, s.OnInvalid)
		value = s.otherwise(r)
	}
	r.remember(s.Annotation, value)
	return value
}

// otherwise is the value that holds without the annotation.
func (s Setting[T]) otherwise(r *Reader) T {
	if s.Key != "" {
		if value, ok := r.config.values[s.Key]; ok {
			return value.(T)
		}
	}
	return s.Default
}
