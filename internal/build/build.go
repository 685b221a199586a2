// Package build turns Kubernetes objects into the model, one unit at a time:
// a host, a name, a backend or the globals.
//
// It is pure. What it returns follows from the objects that a View shows and
// from nothing else: no clock, network, file, logger, random number or map
// order. Problems with objects become findings and never stop a build.
//
// It knows what Ingresses mean, and what a feature is, but no single feature,
// and neither NGINX nor where the objects came from.
package build

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// A View shows the newest objects. They must not be changed once they were
// shown: a new version is a new object.
type View interface {
	// Ingresses are those of our class that name the host (see Refer), in any
	// order.
	Ingresses(host string) []*networkingv1.Ingress
	// References are those of an Ingress of our class that was shown (see Refer).
	References(*networkingv1.Ingress) References
	// Changes counts up with every change of what is shown.
	Changes() uint64
	// Claimants are the Ingresses of our class that have the alias among their
	// aliases (see Refer), in any order.
	Claimants(alias string) []*networkingv1.Ingress
	// PatternAliases are the aliases of Ingresses of our class that stand for
	// more than one name, in any order.
	PatternAliases() []string
	// Service is nil if there is none of that name.
	Service(types.NamespacedName) *corev1.Service
	// EndpointSlices are those of the named Service, in any order.
	EndpointSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice
	// Secret is nil if there is none of that name.
	Secret(types.NamespacedName) *corev1.Secret
	// DefaultBackend is the Service that answers what no rule does, empty where
	// that is the built-in default backend.
	DefaultBackend() types.NamespacedName
	// ConfigMap is the one with Headgate's options, nil if there is none.
	ConfigMap() *corev1.ConfigMap
	// Addresses are those of a DNS name that ExternalName gave, nil until the
	// name was looked up.
	Addresses(name string) *source.Addresses
	// ExternalNames tells whether Services of type ExternalName are served.
	ExternalNames() bool
	// Zone is the zone that endpoints are to be near to, empty for none.
	Zone() string
	// Users are the Ingresses of our class that refer to the backend, in any
	// order.
	Users(backendKey string) []*networkingv1.Ingress
	// Referenced tells whether an Ingress of our class refers to the backend, or
	// it is the default one.
	Referenced(backendKey string) bool
}

// A Builder builds with a list of features. It remembers what it parsed out of
// the ConfigMap and of Secrets for as long as they are the newest, and what
// aliases lead to, which saves time and changes no result. It must not be used by two goroutines at once.
type Builder struct {
	features []feature.Feature
	prefix   string
	known    map[string]bool // annotations, by their whole names
	// ofBackends are the annotations that are settings of backends.
	ofBackends   []backendSetting
	config       memo[*corev1.ConfigMap, parsedConfig]
	noConfig     *feature.Config
	rules        rulesMemo
	certificates map[types.NamespacedName]memo[*corev1.Secret, parsedCertificate]
	namings      namings
	// expressions are the texts to match by of aliases that are expressions.
	expressions map[string]string
}

// New makes a Builder. Prefix stands before the names of annotations, without
// its slash.
func New(features []feature.Feature, prefix string) *Builder {
	known := map[string]bool{}
	var ofBackends []backendSetting
	for _, f := range features {
		for _, s := range f.Settings {
			name := s.Declaration().Annotation
			if name == "" {
				continue
			}
			known[prefix+"/"+name] = true
			if f.Backend != nil {
				ofBackends = append(ofBackends, backendSetting{prefix + "/" + name, s})
			}
		}
	}
	noConfig, _ := feature.NewConfig(features, nil)
	return &Builder{
		noConfig:     noConfig,
		features:     features,
		prefix:       prefix,
		known:        known,
		ofBackends:   ofBackends,
		certificates: map[types.NamespacedName]memo[*corev1.Secret, parsedCertificate]{},
	}
}

// A memo is the result of parsing one object. Objects never change, so the
// same object has the same result.
type memo[Object comparable, Result any] struct {
	of     Object
	result Result
	known  bool
}

func (m *memo[Object, Result]) get(of Object, parse func(Object) Result) Result {
	if !m.known || m.of != of {
		*m = memo[Object, Result]{of: of, result: parse(of), known: true}
	}
	return m.result
}

// oldestFirst orders Ingresses by who wins a conflict.
func oldestFirst(ingresses []*networkingv1.Ingress) []*networkingv1.Ingress {
	sorted := slices.Clone(ingresses)
	slices.SortFunc(sorted, compareAge)
	return sorted
}

// compareAge puts the Ingress first that wins a conflict: the older, and of two
// equally old the one whose namespace/name comes later in the alphabet, as
// the predecessor has it.
func compareAge(a, b *networkingv1.Ingress) int {
	if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(fullName(b), fullName(a))
}

func fullName(ing *networkingv1.Ingress) string { return ing.Namespace + "/" + ing.Name }

func objectName(ing *networkingv1.Ingress) string { return "ingress/" + fullName(ing) }

func origin(ing *networkingv1.Ingress) model.Origin {
	return model.Origin{Namespace: ing.Namespace, Ingress: ing.Name}
}

// unknownAnnotations are the findings for annotations of ours that no feature
// has.
func (b *Builder) unknownAnnotations(ing *networkingv1.Ingress) []finding.Finding {
	var fs []finding.Finding
	for name := range ing.Annotations {
		if strings.HasPrefix(name, b.prefix+"/") && !b.known[name] {
			fs = append(fs, finding.Finding{
				Object: objectName(ing), Field: name, Code: finding.NotSupported,
				Message: "this annotation is not supported", Effect: "it does nothing",
			})
		}
	}
	return fs
}

func problemFindings(object string, problems []feature.Problem) []finding.Finding {
	var fs []finding.Finding
	for _, p := range problems {
		code := finding.InvalidValue
		if p.Unknown {
			code = finding.UnknownKey
		}
		fs = append(fs, finding.Finding{Object: object, Field: p.Field, Code: code, Message: p.Message, Effect: p.Effect})
	}
	return fs
}
