package feature

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// An ObjectKind is a kind of object that settings refer to.
type ObjectKind int

// The kinds.
const (
	NoObject ObjectKind = iota
	Secret
	ConfigMap
)

func (k ObjectKind) String() string { return [...]string{"no object", "Secret", "ConfigMap"}[k] }

// An ObjectName is what a setting says of an object. Without a Namespace it is
// in the Ingress's; without a Name the setting refers to nothing.
type ObjectName struct{ Namespace, Name string }

func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// A Reference is an object that an Ingress refers to by a setting.
type Reference struct {
	Kind ObjectKind
	ObjectName
}

// Objects has the data of what settings refer to.
type Objects struct {
	// Secret and ConfigMap are false where there is no object of that name.
	Secret    func(ObjectName) (map[string][]byte, bool)
	ConfigMap func(ObjectName) (map[string]string, bool)
	// Derive is what make returns, or returned already for that Secret as it is
	// now and that key. May be nil.
	Derive func(secret ObjectName, key string, make func() any) any
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// Object reads "name" or "namespace/name".
func Object(text string) (ObjectName, error) {
	namespace, name, two := strings.Cut(text, "/")
	if !two {
		namespace, name = "", text
	}
	if !objectName.MatchString(name) || two && (!objectName.MatchString(namespace) || strings.Contains(namespace, ".")) {
		return ObjectName{}, errors.New("allowed are the name of an object, and namespace/name")
	}
	return ObjectName{namespace, name}, nil
}

// Refer lists the objects that the settings of an Ingress refer to: all that
// SecretOf and ConfigMapOf will ask for, whether or not it may be read.
func Refer(r *Reader, settings []Declared) []Reference {
	var list []Reference
	for _, s := range settings {
		if ref, ok := s.refer(r); ok {
			list = append(list, ref)
		}
	}
	return list
}

// SecretOf is the data of the Secret that a setting refers to. It is false if
// the setting refers to none, or to one that is not there or may not be read,
// which is then noted as a bad value of the setting.
func SecretOf(r *Reader, s Setting[ObjectName]) (data map[string][]byte, ok bool) {
	name, ok := readable(r, s)
	if !ok {
		return nil, false
	}
	data, ok = r.objects.Secret(name)
	if !ok {
		r.Refuse(s, finding.MissingObject, fmt.Sprintf("Secret %s does not exist", name))
	}
	return data, ok
}

// ConfigMapOf does for a ConfigMap what SecretOf does for a Secret.
func ConfigMapOf(r *Reader, s Setting[ObjectName]) (data map[string]string, ok bool) {
	name, ok := readable(r, s)
	if !ok {
		return nil, false
	}
	data, ok = r.objects.ConfigMap(name)
	if !ok {
		r.Refuse(s, finding.MissingObject, fmt.Sprintf("ConfigMap %s does not exist", name))
	}
	return data, ok
}

// readable is the whole name of the object that a setting refers to, if it may
// be read.
func readable(r *Reader, s Setting[ObjectName]) (name ObjectName, ok bool) {
	name = s.Get(r)
	if name.Name == "" {
		return ObjectName{}, false
	}
	name = name.in(r.origin.Namespace)
	if name.Namespace != r.origin.Namespace && !s.AnyNamespace && !crossNamespace.Get(r) {
		r.Refuse(s, finding.InvalidValue, fmt.Sprintf(
			"%s is in another namespace: allowed is only %s, as long as the key %s is false", name, r.origin.Namespace, crossNamespace.Key))
		return ObjectName{}, false
	}
	return name, true
}

func (n ObjectName) in(namespace string) ObjectName {
	if n.Namespace == "" {
		n.Namespace = namespace
	}
	return n
}
