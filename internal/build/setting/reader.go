// Package setting reads what annotations and the ConfigMap set, and with them
// what an Ingress refers to.
//
// It is pure, like package setting. It knows that there are features, and no single
// one. It reads settings and calls what features declare of names, calls and
// canaries: what follows for hosts, names and backends is for others.
package setting

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/memo"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ingressnginx"
	"github.com/headgate/headgate/internal/model"
)

// A View shows the newest objects that settings are in or refer to.
type View interface {
	// ConfigMap is the one with Headgate's options, nil if there is none.
	ConfigMap() *corev1.ConfigMap
	// Secret is nil if there is none of that name.
	Secret(types.NamespacedName) *corev1.Secret
	// NamedConfigMap is a ConfigMap that an Ingress of our class, or the options, refer to
	// (see Refer), nil if there is none of that name.
	NamedConfigMap(types.NamespacedName) *corev1.ConfigMap
	// GeoDatabases are those that were looked for, sorted by edition.
	GeoDatabases() []feature.GeoDatabase
}

// A Reader reads settings. It remembers what it parsed out of the ConfigMap and
// Ingresses for as long as they are the newest.
type Reader struct {
	// Schema has the settings of all features.
	Schema   *feature.Schema
	features []feature.Feature
	prefix   string
	// names are all annotations that Headgate or ingress-nginx has, without a prefix,
	// sorted.
	names []string
	// keys are all keys, of both too.
	keys   []string
	config memo.Of[*corev1.ConfigMap, Options]
	// parsed has what annotations say, since an Ingress may have thousands of hosts,
	// and regular expressions take long to compile.
	parsed  memo.Map[types.NamespacedName, annotated, *feature.Parsed]
	derived memo.Of[derivation, any]
	// fallback is the annotation of a backend that answers for others, without the prefix.
	fallback string
}

// NewReader makes a Reader of the settings of features. Prefix stands before the
// names of annotations, without its slash. Lacking is what the NGINX can't do
// that is built for.
func NewReader(features []feature.Feature, prefix string, lacking ...feature.Capability) *Reader {
	schema := feature.NewSchema(prefix, features, lacking...)
	names := slices.Sorted(slices.Values(slices.Concat(ingressnginx.Names(), schema.Annotations())))
	keys := slices.Sorted(slices.Values(slices.Concat(ingressnginx.Keys(), schema.Keys())))
	return &Reader{Schema: schema, features: features, prefix: prefix, names: slices.Compact(names), keys: slices.Compact(keys), fallback: feature.CauseOf(features, feature.FallbackBackend)}
}

// Options are what the ConfigMap says, and what is wrong with it.
type Options struct {
	Config   *feature.Config
	Problems []feature.Problem
}

// Options are those of the ConfigMap; without one all defaults hold.
func (r *Reader) Options(v View) Options { return r.parseConfig(v.ConfigMap()) }

func (r *Reader) parseConfig(object *corev1.ConfigMap) Options {
	return r.config.Get(object, func(object *corev1.ConfigMap) Options {
		var data map[string]string
		if object != nil {
			data = object.Data
		}
		config, problems := r.Schema.Config(data)
		r.explainUnknownKeys(problems)
		return Options{config, problems}
	})
}

const (
	// maxParsed is how many Ingresses' annotations are remembered.
	maxParsed = 10_000
	// fewBytes of annotations are parsed again for each of few hosts.
	fewBytes = 256
)

// annotated is what is parsed: objects are not part of it, since they change by
// themselves.
type annotated struct {
	*networkingv1.Ingress
	config *feature.Config
}

func (r *Reader) parse(ing *networkingv1.Ingress, config *feature.Config) *feature.Parsed {
	parse := func(of annotated) *feature.Parsed {
		return r.Schema.Parse(spec.Origin(of.Ingress), of.Annotations, of.config)
	}
	bytes := 0
	for _, text := range ing.Annotations {
		bytes += len(text)
	}
	if len(ing.Spec.Rules) <= spec.FewRules && bytes <= fewBytes {
		return parse(annotated{ing, config})
	}
	r.parsed.Most = maxParsed
	return r.parsed.Get(types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}, annotated{ing, config}, parse)
}

// Read reads the annotations of an Ingress, and the objects that they refer to.
func (r *Reader) Read(ing *networkingv1.Ingress, v View) *feature.Parsed {
	return r.parse(ing, r.Options(v).Config).Attach(r.objects(v))
}

// Process returns the values of the options alone, with the objects that they refer to, and
// what is wrong with them.
func (r *Reader) Process(v View) (feature.Values, []feature.Problem) {
	options := r.Options(v)
	objects := r.objects(v)
	objects.GeoDatabases = v.GeoDatabases()
	config, missing := options.Config.Attach(objects)
	return config.Values(), slices.Concat(options.Problems, missing)
}

func (r *Reader) objects(v View) feature.Objects {
	return feature.Objects{
		Secret: func(name feature.ObjectName) (map[string][]byte, bool) {
			secret := v.Secret(types.NamespacedName(name))
			return dataOf(secret, func(s *corev1.Secret) map[string][]byte { return s.Data })
		},
		ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
			configMap := v.NamedConfigMap(types.NamespacedName(name))
			return dataOf(configMap, func(c *corev1.ConfigMap) map[string]string { return c.Data })
		},
		Derive: func(secret feature.ObjectName, key string, make func() any) any {
			of := derivation{v.Secret(types.NamespacedName(secret)), key}
			return r.derived.Get(of, func(derivation) any { return make() })
		},
	}
}

// dataOf is the data of an object, not nil if there is the object.
func dataOf[O, V any](object *O, data func(*O) map[string]V) (map[string]V, bool) {
	if object == nil {
		return nil, false
	}
	if found := data(object); found != nil {
		return found, true
	}
	return map[string]V{}, true
}

// A derivation is what a feature makes of a Secret. The last one is kept: when a
// Secret changes, all hosts that have it are built one after the other.
type derivation struct {
	of  *corev1.Secret
	key string
}

// Annotation is the whole name of a setting's.
func (r *Reader) Annotation(s feature.AnySetting) string {
	if s == nil {
		return "metadata.annotations"
	}
	return r.prefix + "/" + s.Spec().Annotation
}

// Name is the whole name of an annotation.
func (r *Reader) Name(annotation string) string { return r.prefix + "/" + annotation }

// Resolve merges what the Ingresses that share a host or a backend, the oldest
// first, say of it. It is the only place where an Ingress decides over what is not
// its own. Unit names the host or backend in findings.
func (r *Reader) Resolve(scope feature.Scope, unit string, owners []*feature.Parsed, config *feature.Config) (feature.Merged, []finding.Finding) {
	m := r.Schema.Merge(scope, config, owners, DeniesAll(unit))
	fs := Findings("", m.Problems)
	for _, c := range m.Conflicts {
		fs = append(fs, finding.Finding{
			Object: spec.OriginName(c.Loser), Field: c.Field, Code: finding.Conflict,
			Message: fmt.Sprintf("the value of %s, which is older, applies to %s", spec.OriginName(c.Winner), unit),
			Effect:  "this annotation has no effect for that " + scope.String(),
		})
	}
	return m, fs
}

// DeniesAll is the effect of what denies a whole host or backend.
func DeniesAll(unit string) string { return "all requests for " + unit + " are refused" }

// Findings are about the Ingress that a problem is of, and about the object where
// it is of none.
func Findings(object string, problems []feature.Problem) []finding.Finding {
	fs := make([]finding.Finding, len(problems))
	for i, p := range problems {
		fs[i] = finding.Finding{Object: object, Field: p.Field, Code: p.Code, Message: p.Message, Effect: p.Effect, Rejected: p.Rejected, Denies: p.Denies}
		if p.Ingress != (model.Origin{}) {
			fs[i].Object = spec.OriginName(p.Ingress)
		}
	}
	return fs
}

// Fallback is the annotation by which another backend answers where that of an Ingress has no endpoint,
// without the prefix, empty if the Ingress has none.
func (r *Reader) Fallback(p *feature.Parsed) string {
	if p.Values().IsWritten(feature.SettingSpec{Annotation: r.fallback}) {
		return r.fallback
	}
	return ""
}
