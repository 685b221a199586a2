package feature

import "strings"

// A Setting declares an annotation, a ConfigMap key, or an annotation together
// with the key that gives its default.
type Setting[T any] struct {
	// Annotation is the annotation's name without the prefix, empty for a
	// setting that has only a key. No two settings have the same one.
	Annotation string
	// Key is the ConfigMap key, empty for a setting that has only an
	// annotation.
	Key string
	// Default holds where neither is set.
	Default T
	// Parse reads a value. Its error says what the value must be.
	Parse func(string) (T, error)
	// OnInvalid says what a bad value of the annotation does, or of the key where
	// that counts. When, if it is not nil, reports whether it does so beside the
	// other values: where the setting has no effect, a bad value is reported and
	// denies nothing.
	OnInvalid OnInvalid
	When      func(Values) bool
	Risk      Risk
	// Scope is what the setting holds for, and Merge how the values of several
	// Ingresses are merged there.
	Scope Scope
	Merge Merge
	// Leads is set on the one setting of a feature's with MergeTogether by which an
	// Ingress asks for the feature.
	Leads bool
	// Refers says that the value is the name of such an object. T is then
	// ObjectName; SecretOf and ConfigMapOf give the data. The key can't refer.
	Refers ObjectKind
	// AnyNamespace lets the object be of any namespace, even if the key
	// allow-cross-namespace-resources is false.
	AnyNamespace bool
	// Doc says what the setting does, for the reference.
	Doc string
}

// A Scope is what a setting holds for.
type Scope int

// The scopes.
const (
	// ScopeRoute is the routes of the Ingress itself.
	ScopeRoute Scope = iota
	// ScopeHost is a host with the routes of all Ingresses that name it.
	ScopeHost
	// ScopeBackend is a port of a Service, for all Ingresses that use it.
	ScopeBackend
	// ScopeName is names that the Ingress claims; the oldest that claims a name
	// has it.
	ScopeName
	// ScopeProcess is the NGINX process, and every request: for keys only.
	ScopeProcess

	scopes // how many there are
)

// Scopes are all of them.
func Scopes() []Scope { return upTo(scopes) }

func (s Scope) String() string {
	return [scopes]string{"route", "host", "backend", "name", "process"}[s]
}

// Merge says how the values that several Ingresses have of a host's or a
// backend's setting are merged. An Ingress that the administrator forbids has no
// part in it. A finding reports each value of another one that does not count.
type Merge int

// The merges.
const (
	// MergeOldest takes the value of the oldest Ingress that has a good one that
	// is not empty, each setting by itself.
	MergeOldest Merge = iota
	// MergeOwner takes the values of the oldest Ingress, and defaults where it has
	// none. A bad value of it that denies denies the whole unit.
	MergeOwner
	// MergeTogether takes all of the feature's values from the oldest Ingress that
	// has the leading setting, and none if no Ingress has it. A bad value of it that
	// denies denies the whole unit, and no younger Ingress's takes its place: for
	// access control.
	MergeTogether

	merges // how many there are
)

// Merges are all of them.
func Merges() []Merge { return upTo(merges) }

func (m Merge) String() string { return [merges]string{"oldest", "owner", "together"}[m] }

// upTo are the numbers below n.
func upTo[T ~int](n T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

// AnySetting is a Setting of any type.
type AnySetting interface {
	Spec() SettingSpec
	// Check parses a value.
	Check(text string) (any, error)
	// trim takes spaces from around the text of an annotation.
	trim(text string) string
	get(Values) any
}

// A SettingSpec is what a setting says of itself.
type SettingSpec struct {
	Annotation, Key, Doc string
	// Default is what Check would return for it.
	Default      any
	Risk         Risk
	OnInvalid    OnInvalid
	When         func(Values) bool
	Scope        Scope
	Merge        Merge
	Leads        bool
	Refers       ObjectKind
	AnyNamespace bool
}

// SettingSpec describes the setting.
func (s Setting[T]) Spec() SettingSpec {
	return SettingSpec{
		Annotation: s.Annotation, Key: s.Key, Doc: s.Doc, Default: s.Default, Risk: s.Risk, OnInvalid: s.OnInvalid, When: s.When,
		Scope: s.Scope, Merge: s.Merge, Leads: s.Leads, Refers: s.Refers, AnyNamespace: s.AnyNamespace,
	}
}

// Check parses a value.
func (s Setting[T]) Check(text string) (any, error) { return s.Parse(text) }

// Get is the value that counts: the annotation's, else the ConfigMap key's, else
// the default. What it points to must not be changed.
func (s Setting[T]) Get(v Values) T {
	if e := v.entries[s.Annotation]; e != nil && e.value != nil {
		return e.value.(T)
	}
	if v.config != nil {
		if value, ok := v.config.values[s.Key]; ok {
			return value.(T)
		}
	}
	return s.Default
}

func (s Setting[T]) get(v Values) any { return s.Get(v) }

// trim takes none from around true and false: there ingress-nginx takes none.
func (s Setting[T]) trim(text string) string {
	if _, is := any(s.Default).(bool); is {
		return text
	}
	return strings.TrimSpace(text)
}
