// Package routing builds hosts: which paths they have, to which backend each leads, and what the features
// make of it. It knows what Ingresses say; how backends come to endpoints is for build.
package routing

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/servername"
	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
)

// A View shows the newest objects, see build.View.
type View interface {
	servername.View
	// Canaries are the Ingresses that name the host and are canaries.
	Canaries(host string) []*networkingv1.Ingress
	// Service is nil if there is none of that name.
	Service(types.NamespacedName) *corev1.Service
	// DefaultBackend is the Service that answers what no rule does, empty where
	// that is the built-in default backend.
	DefaultBackend() types.NamespacedName
	// Users are the Ingresses that refer to the backend.
	Users(backendKey string) []*networkingv1.Ingress
	// Callers are the Ingresses whose routes ask the backend besides their own ones.
	// CalledByOptions reports whether the ConfigMap has all routes call it.
	Callers(backendKey string) []*networkingv1.Ingress
	CalledByOptions(backendKey string) bool
	// Passthrough reports whether TLS connections may be passed through.
	Passthrough() bool
}

// A Builder builds hosts. It remembers the rules of Ingresses, and which paths a host answers, for as long
// as the View shows the same. It must not be used by two goroutines at once.
type Builder struct {
	features []feature.Feature
	settings *setting.Reader
	// order has the place of each feature in the list, by its name.
	order map[string]int
	rules spec.RulesMemo
	last  lastAnswers
}

// NewBuilder makes a Builder that reads settings as the builder of names does.
func NewBuilder(features []feature.Feature, settings *setting.Reader) *Builder {
	order := make(map[string]int, len(features))
	for i, f := range features {
		order[f.Name] = i
	}
	return &Builder{features: features, settings: settings, order: order}
}

// Apply lets the features write into a route.
func (b *Builder) Apply(v feature.Values, out feature.RouteOut) feature.RouteOut {
	out.Report = feature.NewReport(v, "the paths of this Ingress answer 503")
	for _, f := range b.features {
		if f.Route == nil {
			continue
		}
		before := len(out.Route.Policies)
		f.Route(v, &out)
		if len(out.Route.Policies) > before && isGuard(f) {
			out.Guards = append(out.Guards, f.Name)
		}
	}
	return out
}
