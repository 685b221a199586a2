package feature

import (
	"errors"
	"regexp"
	"strings"
)

// An ObjectKind is a kind of object that settings refer to.
type ObjectKind int

// The kinds.
const (
	NoObject ObjectKind = iota
	Secret
	ConfigMap
	// Service is a Service in the Ingress's namespace. Its first port becomes a backend
	// of the Ingress.
	Service
)

func (k ObjectKind) String() string {
	return [...]string{"no object", "Secret", "ConfigMap", "Service"}[k]
}

// An ObjectName is the name of an object in a setting. Without a Namespace it is in
// that of the Ingress; without a Name the setting refers to nothing.
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

// Objects has the data of the objects that settings refer to.
type Objects struct {
	// Secret and ConfigMap are false where there is no object of that name.
	Secret    func(ObjectName) (map[string][]byte, bool)
	ConfigMap func(ObjectName) (map[string]string, bool)
	// GeoDatabases are those of editions that the administrator wants.
	GeoDatabases []GeoDatabase
	// Derive returns what make returns, or returned before for the same version of the
	// Secret and the same key. May be nil.
	Derive func(secret ObjectName, key string, make func() any) any
}

// A GeoDatabase is what is known of a database of where addresses are.
type GeoDatabase struct {
	Edition string
	// Digest is that of its content, empty if NGINX can't have it.
	Digest string
	// Problem is why there is none, or no newer one.
	Problem string
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// Object reads "name" or "namespace/name".
func Object(text string) (ObjectName, error) {
	namespace, name, two := strings.Cut(text, "/")
	if !two {
		namespace, name = "", text
	}
	if !objectName.MatchString(name) || two && (!objectName.MatchString(namespace) || strings.Contains(namespace, ".")) {
		return ObjectName{}, errors.New("must be NAME or NAMESPACE/NAME of an object")
	}
	return ObjectName{namespace, name}, nil
}

// ObjectIn reads "namespace/name".
func ObjectIn(text string) (ObjectName, error) {
	name, err := Object(text)
	if err != nil || name.Namespace == "" {
		return ObjectName{}, errors.New("must be NAMESPACE/NAME of an object")
	}
	return name, nil
}

// SecretIn reads "namespace/name" of a Secret. Spaces are left out, as ingress-nginx does.
func SecretIn(text string) (ObjectName, error) {
	name, err := ObjectIn(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		return ObjectName{}, errors.New("must be NAMESPACE/NAME of a Secret")
	}
	return name, nil
}

func (n ObjectName) in(namespace string) ObjectName {
	if n.Namespace == "" {
		n.Namespace = namespace
	}
	return n
}
