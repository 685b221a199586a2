package feature

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Values are the values of settings: of one Ingress, of several merged ones, or of the
// ConfigMap alone. Reading them has no side effect.
type Values struct {
	origin model.Origin
	config *Config
	// entries are the annotations, by their names without the prefix.
	entries map[string]*entry
	derive  func(secret ObjectName, key string, make func() any) any
}

// An entry is one annotation of an Ingress.
type entry struct {
	origin model.Origin
	scope  Scope
	text   string
	// value is nil if the text is invalid. counts is set if it is valid, and the object
	// that it refers to can be read.
	value  any
	counts bool
	// denies is set on an entry that is not used and denies.
	denies bool
	// implied is set where another annotation stands for this one.
	implied   *Implied
	secret    map[string][]byte
	configMap map[string]string
}

// Origin names the Ingress, unless there is none, or several are merged.
func (v Values) Origin() model.Origin { return v.origin }

// OriginOf names the Ingress that has the annotation of a setting, also if several are merged.
func (v Values) OriginOf(s AnySetting) model.Origin {
	if e := v.entries[s.Spec().Annotation]; e != nil {
		return e.origin
	}
	return v.origin
}

// Says reports whether there is an annotation that is a setting of a scope.
func (v Values) Says(scope Scope) bool {
	for _, e := range v.entries {
		if e.scope == scope {
			return true
		}
	}
	return false
}

// Has reports whether NGINX has a capability. A feature that needs one that NGINX
// lacks reports finding.MissingCapability: by Deny if it controls access, else by
// Reject.
func (v Values) Has(c Capability) bool { return !slices.Contains(v.config.schema.lacks, c) }

// IsSet reports whether the annotation of a setting is there, with a valid value or not.
func (v Values) IsSet(s AnySetting) bool { return v.entries[s.Spec().Annotation] != nil }

// IsWritten reports whether the annotation of a setting is there itself, with a value that is used.
func (v Values) IsWritten(s AnySetting) bool {
	e := v.entries[s.Spec().Annotation]
	return e != nil && e.counts && e.implied == nil
}

// Rejects reports whether the annotation of a setting is there, and is not used.
func (v Values) Rejects(s AnySetting) bool {
	e := v.entries[s.Spec().Annotation]
	return e != nil && !e.counts
}

// field is where a setting is written: an annotation's whole name, or a key.
func (v Values) field(d SettingSpec) string {
	if d.Annotation == "" {
		return d.Key
	}
	if e := v.entries[d.Annotation]; e != nil && e.implied != nil {
		d = e.implied.By.Spec()
	}
	return v.config.schema.prefix + d.Annotation
}

// ConfigMapOf is the data of the ConfigMap that a setting refers to. It is false if the
// setting refers to none, or to one that does not exist or may not be read, which
// was then reported as a bad value of the setting.
func ConfigMapOf(v Values, s Setting[ObjectName]) (data map[string]string, ok bool) {
	if e := v.entries[s.Annotation]; e != nil {
		data = e.configMap
	} else if v.config != nil {
		data = v.config.configMaps[s.Key]
	}
	return data, data != nil
}

// GeoDatabases are those of the editions that the administrator wants, as far as they have been looked for. Only Process
// gets them.
func (v Values) GeoDatabases() []GeoDatabase { return v.config.geoDatabases }

// FromSecret returns what read makes of the Secret that a setting refers to; false as
// ConfigMapOf. The result is cached for all hosts that use the Secret: it must depend on
// the data and the key alone.
func FromSecret[T any](v Values, s Setting[ObjectName], key string, read func(map[string][]byte) T) (value T, ok bool) {
	e := v.entries[s.Annotation]
	if e == nil && v.config != nil && v.config.secrets[s.Key] != nil {
		return read(v.config.secrets[s.Key]), true
	}
	if e == nil || e.secret == nil {
		return value, false
	}
	if v.derive == nil {
		return read(e.secret), true
	}
	name := s.Get(v).in(e.origin.Namespace)
	return v.derive(name, key, func() any { return read(e.secret) }).(T), true
}

// A From says where a setting's value came from.
type From string

// The places, in order of precedence.
const (
	FromAnnotation From = "annotation"
	FromKey        From = "key"
	FromDefault    From = "default"
)

// A Reading is the value of a setting and where it came from.
type Reading struct {
	// Feature is the one that declares the setting.
	Feature string
	// Annotation and Key are as the Setting declares them, without a prefix.
	Annotation, Key string
	// Value is the value that is used, as text: the written one if the value has no
	// short text, empty for a default without one.
	Value string
	From  From
	// Ingress has the annotation. Written is its text, empty if there is none. It is
	// not used if Refused is set.
	Ingress model.Origin
	Written string
	Refused bool
	// Idle says why the annotation does nothing, for no fault of its value. Empty if it does.
	Idle string
	// By is the annotation that stands for this one, and Where the place in its text, empty
	// if it is written itself.
	By, Where string
	// Denies is set where the invalid annotation denies.
	Denies bool
	// KeyDenies is set where the invalid value of the key denies instead.
	KeyDenies bool
}

// Readings are the values of all settings of a scope, in the order in which they
// are declared. Problems are those that were reported of them.
func (s *Schema) Readings(v Values, scope Scope, problems []Problem) []Reading {
	var list []Reading
	for _, one := range s.settings {
		if one.Scope == scope {
			list = append(list, one.reading(v, problems))
		}
	}
	return list
}

// Keys are the ConfigMap keys of all settings, in the order in which they are declared.
func (s *Schema) Keys() []string {
	var names []string
	for _, d := range s.settings {
		if d.Key != "" {
			names = append(names, d.Key)
		}
	}
	return names
}

// Reading is the value of one setting.
func (s *Schema) Reading(v Values, setting AnySetting) Reading {
	d := setting.Spec()
	return cmp.Or(s.byAnnotation[s.prefix+d.Annotation], s.byKey[d.Key]).reading(v, nil)
}

func (d *schemaSetting) reading(v Values, problems []Problem) Reading {
	r := Reading{Feature: d.feature, Annotation: d.Annotation, Key: d.Key, Value: valueText(d.Get(v)), From: FromDefault, Ingress: v.origin}
	if _, ok := v.config.values[d.Key]; ok {
		r.From = FromKey
	}
	e := v.entries[d.Annotation]
	r.KeyDenies = slices.Contains(v.config.denies, d) && d.keyDenies(v)
	if e == nil {
		return r
	}
	r.Ingress, r.Written, r.Refused, r.Denies = e.origin, finding.Shorten(e.text), !e.counts, e.denies
	if e.implied != nil {
		r.By, r.Where = e.implied.By.Spec().Annotation, e.implied.Where
	}
	if e.value != nil {
		r.From, r.Value = FromAnnotation, cmp.Or(r.Value, r.Written)
	}
	if e.implied == nil {
		r.Idle = d.Needs.missing(v)
	}
	for _, p := range problems {
		if p.Field == v.field(d.SettingSpec) && p.Ingress == e.origin {
			if p.Code == finding.NoEffect {
				r.Idle = p.Message
			}
			r.Refused, r.Denies = r.Refused || p.Rejected || p.unused, r.Denies || p.Denies
		}
	}
	return r
}

// keyDenies reports whether a key with a bad value that denies applies: no annotation
// has a value instead.
func (d *schemaSetting) keyDenies(v Values) bool {
	e := v.entries[d.Annotation]
	return (e == nil || e.value == nil) && (d.When == nil || d.When(v))
}

// valueText is empty for a value without a short text.
func valueText(value any) string {
	switch v := value.(type) {
	case []string:
		return finding.CutList(finding.WithoutUser(strings.Join(v, ", ")), finding.MaxError)
	case fmt.Stringer:
		return finding.Cut(finding.WithoutUser(v.String()), finding.MaxError)
	}
	switch reflect.TypeOf(value).Kind() {
	case reflect.Slice, reflect.Struct, reflect.Map, reflect.Pointer:
		return ""
	}
	return finding.Cut(finding.WithoutUser(fmt.Sprint(value)), finding.MaxError)
}
