package unit

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/internal/model"
)

// A Kind is a kind of unit. Its text stands in metrics, in the APIs and in what
// is pushed.
type Kind string

// The kinds. What there is to know of each is in the table below.
const (
	Globals Kind = "globals"
	// DefaultCertificate is the certificate that names without one show. It is
	// pushed as a Certificate of the name model.DefaultCertificate.
	DefaultCertificate Kind = "default-certificate"
	Certificate        Kind = "certificate"
	OCSPResponse       Kind = "ocsp"
	Content            Kind = "content"
	Backend            Kind = "backend"
	Host               Kind = "host"
	Name               Kind = "name"
	Patterns           Kind = "patterns"
	// Refusal is why an Ingress is left out as a whole. It has findings only.
	Refusal Kind = "refusal"
	// Stream is a port of a TCP or UDP service, by model.StreamName. Headgate serves it
	// itself.
	Stream Kind = "stream"
)

// Traits are what there is to know of a kind.
type Traits struct {
	Kind Kind
	// Only is the name of the one unit of the kind, empty if there may be many.
	Only string
	// Built is set for what package build makes by its key. Units of the other
	// kinds come with those that refer to them.
	Built bool
	// Prefix stands before the names of such units in shared memory, and
	// Dictionary is where it keeps them. Both are empty for what is not pushed.
	Prefix, Dictionary string
	// Kept units are not deleted while a host is held back: the version of it
	// that the data plane still has may refer to them.
	Kept bool
}

const (
	unitsDictionary        = "units"
	certificatesDictionary = "certificates"
)

// kinds has all kinds, in the order to push them: what refers to something comes
// after it. Deletions go the other way.
//
// A new kind is an entry here, a function in package build that makes it, a case
// of Pack, and an entry in lua/headgate/units.lua. Tests compare them.
var kinds = []Traits{
	{Kind: Globals, Only: GlobalsName, Built: true, Prefix: "g:", Dictionary: unitsDictionary},
	{Kind: DefaultCertificate, Only: model.DefaultCertificate, Built: true},
	{Kind: Certificate, Prefix: "c:", Dictionary: certificatesDictionary, Kept: true},
	{Kind: OCSPResponse, Built: true, Prefix: "s:", Dictionary: unitsDictionary},
	{Kind: Content, Prefix: "t:", Dictionary: unitsDictionary, Kept: true},
	{Kind: Backend, Built: true, Prefix: "b:", Dictionary: unitsDictionary, Kept: true},
	{Kind: Host, Built: true, Prefix: "h:", Dictionary: unitsDictionary},
	{Kind: Name, Built: true, Prefix: "n:", Dictionary: unitsDictionary},
	{Kind: Patterns, Only: "patterns", Built: true, Prefix: "p:", Dictionary: unitsDictionary},
	{Kind: Refusal, Built: true},
	{Kind: Stream, Built: true},
}

// Kinds are all kinds, in the order to push them.
func Kinds() []Traits { return slices.Clone(kinds) }

// Traits are those of the kind, the zero value if there is no such kind.
func (k Kind) Traits() Traits {
	if i := k.place(); i >= 0 {
		return kinds[i]
	}
	return Traits{}
}

func (k Kind) place() int { return slices.IndexFunc(kinds, func(t Traits) bool { return t.Kind == k }) }

// Pushed reports whether units of the kind are pushed.
func (t Traits) Pushed() bool { return t.Prefix != "" }

// Key names a unit of the kind.
func (k Kind) Key(name string) Key { return Key{k, name} }

// GlobalsName is the name of the one unit of its kind.
const GlobalsName = "globals"

// The keys of kinds that have one unit.
var (
	GlobalsKey            = Globals.Key(GlobalsName)
	PatternsKey           = Patterns.Key("patterns")
	DefaultCertificateKey = DefaultCertificate.Key(model.DefaultCertificate)
)

// A Key names a unit.
type Key struct {
	Kind Kind
	Name string
}

// String is the kind and, where there may be many of it, the name.
func (k Key) String() string {
	if k.Kind.Traits().Only != "" {
		return string(k.Kind)
	}
	return string(k.Kind) + " " + k.Name
}

// Compare orders keys by their kinds, and then by their names.
func (k Key) Compare(other Key) int {
	return cmp.Or(k.Kind.Compare(other.Kind), cmp.Compare(k.Name, other.Name))
}

// CompareDeleted orders keys as their units are deleted: what refers to something goes before it.
func (k Key) CompareDeleted(other Key) int {
	return cmp.Or(other.Kind.Compare(k.Kind), cmp.Compare(k.Name, other.Name))
}

// Compare orders kinds as they are pushed.
func (k Kind) Compare(other Kind) int {
	if k == other {
		return 0
	}
	return cmp.Compare(k.place(), other.place())
}
