package feature

// A Setting declares an annotation, a ConfigMap key, or one with the key of its default.
type Setting[T any] struct {
	// Annotation is the annotation's name without the prefix, empty for a
	// setting that has only a key. No two settings have the same one.
	Annotation string
	// Key is the ConfigMap key, empty for a setting that has only an annotation.
	Key string
	// Default applies where neither is set.
	Default T
	// Parse reads a value. Its error says what the value must be.
	Parse func(string) (T, error)
	// OnInvalid is the effect of an invalid value of the annotation, or of the key
	// where the key applies. When, if it is not nil, reports whether the other values
	// let the setting have an effect: if not, an invalid value is reported and denies
	// nothing.
	OnInvalid OnInvalid
	When      func(Values) bool
	// Denial says when an invalid annotation denies, if not always.
	Denial string
	Risk   Risk
	// Scope is what the setting applies to, and Merge how the values of several
	// Ingresses are merged there.
	Scope Scope
	Merge Merge
	// Leads is set on one setting of a feature with MergeTogether: an Ingress that has
	// it asks for the feature.
	Leads bool
	// Needs is the setting without which this one does nothing.
	Needs Need
	// Refers is the kind of object that the value names. T is then ObjectName, and
	// FromSecret and ConfigMapOf return the data. A key can refer to a ConfigMap, with its
	// namespace, if its scope is the process: Process alone gets the data.
	Refers ObjectKind
	// AnyNamespace lets the object be of any namespace, even if the key
	// allow-cross-namespace-resources is false.
	AnyNamespace bool
	// Snippet is set where the value is directives, which count only while AllowsSnippets.
	Snippet bool
	// Doc says what the setting does, for the reference.
	Doc string
}

// A Scope is what a setting applies to.
type Scope int

// The scopes.
const (
	// ScopeRoute is the routes of the Ingress itself.
	ScopeRoute Scope = iota
	// ScopeHost is a host with the routes of all Ingresses that name it.
	ScopeHost
	// ScopeBackend is a port of a Service, for all Ingresses that use it.
	ScopeBackend
	// ScopeName is names that the Ingress claims; the oldest claim counts.
	ScopeName
	// ScopeProcess is the NGINX process, and every request: for keys only.
	ScopeProcess

	Scopes // how many there are
)

func (s Scope) String() string {
	return [Scopes]string{"route", "host", "backend", "name", "process"}[s]
}

// Merge says how the values of several Ingresses for a setting of a host or a backend
// are merged. Ingresses that the administrator forbids are left out. A finding reports
// each value of another Ingress that is not used.
type Merge int

// The merges.
const (
	// MergeOldest uses, for each setting, the oldest value that is valid and not empty.
	MergeOldest Merge = iota
	// MergeOwner uses the values of the oldest Ingress, and defaults where it has none.
	// If it has an invalid value that denies, the whole unit is denied.
	MergeOwner
	// MergeTogether uses all of the feature's values from the oldest Ingress that has
	// the leading setting, and none if no Ingress has it. If it has an invalid value
	// that denies, the whole unit is denied, and no younger Ingress replaces it: for
	// access control.
	MergeTogether

	Merges // how many there are
)

// AnySetting is a Setting of any type.
type AnySetting interface {
	// Spec returns the setting without its type.
	Spec() SettingSpec
}

// A SettingSpec is a Setting without its type.
type SettingSpec = Setting[any]

// Spec returns the setting without its type.
func (s Setting[T]) Spec() SettingSpec {
	return SettingSpec{
		Annotation: s.Annotation, Key: s.Key, Doc: s.Doc, Default: s.Default, Risk: s.Risk, OnInvalid: s.OnInvalid, When: s.When, Denial: s.Denial, Needs: s.Needs,
		Parse: func(text string) (any, error) { return s.Parse(text) },
		Scope: s.Scope, Merge: s.Merge, Leads: s.Leads, Snippet: s.Snippet, Refers: s.Refers, AnyNamespace: s.AnyNamespace,
	}
}

// Get returns the annotation's value, else the ConfigMap key's, else the default. What
// it points to must not be changed.
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
