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
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/build/memo"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/build/servername"
	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// A View shows the newest objects, lists in any order. They must not be changed
// once they were shown: a new version is a new object. Ingresses are those of our class.
type View interface {
	routing.View
	certificate.View
	// ConfigMapName is the name of the ConfigMap with Headgate's options, empty if no
	// flag gives one.
	ConfigMapName() types.NamespacedName
	// Template is the administrator's template of nginx.conf, nil if there is none.
	Template() *source.Template
	// EndpointSlices are those of the named Service.
	EndpointSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice
	// DefaultCertificate is the Secret whose certificate is shown where no other
	// is, empty where that is the one that Headgate makes.
	DefaultCertificate() types.NamespacedName
	// OCSPResponse is that on the certificate of that hash, nil if there is none.
	OCSPResponse(certificate string) *source.OCSPResponse
	// Addresses are those of a DNS name, nil until it was looked up.
	Addresses(name string) *source.Addresses
	// Health is that of a backend's endpoints, nil until one of them was unhealthy.
	Health(backendKey string) *source.Health
	// ExternalNames reports whether Services of type ExternalName are served.
	ExternalNames() bool
	// LocalAddresses reports whether tenants' names may lead to guard.IsLocal addresses.
	LocalAddresses() bool
	// Listeners are the addresses at which this instance is reached.
	Listeners() []netip.AddrPort
	// ManualEndpoints reports whether nothing writes EndpointSlices for Services.
	ManualEndpoints() bool
	// Zone is the zone that endpoints are to be near to, empty for none.
	Zone() string
	// Referenced reports whether an Ingress or the options use or call the backend, or
	// it is the default one.
	Referenced(backendKey string) bool
	// Scope says which Ingresses are left out for what is in them.
	Scope() spec.Scope
	// Streams is the ConfigMap with the TCP or UDP services, nil if there is none, and its
	// name, empty if no flag gives one.
	Streams(protocol string) (*corev1.ConfigMap, types.NamespacedName)
	// ReservedPort is what Headgate itself uses a port for, empty if it does not.
	ReservedPort(port uint16) string
	// Refused is the Ingress of that name if the Scope leaves it out, otherwise nil.
	Refused(types.NamespacedName) *networkingv1.Ingress
}

// A Builder builds with a list of features. It remembers what it parsed out of
// the ConfigMap, Ingresses and Secrets for as long as they are the newest, what
// aliases lead to, and which paths a host answers, which saves time and changes no result. It must not be used by two
// goroutines at once.
type Builder struct {
	features     []feature.Feature
	settings     *setting.Reader
	certificates *certificate.Reader
	routes       *routing.Builder
	offered      memo.Of[*feature.Config, offered]
	whole        Whole
	*servername.Builder
}

// New makes a Builder. Prefix stands before the names of annotations, without
// its slash. Lacking is what the NGINX can't do that is built for.
func New(features []feature.Feature, prefix string, lacking ...feature.Capability) *Builder {
	settings, certificates := setting.NewReader(features, prefix, lacking...), &certificate.Reader{}
	return &Builder{
		features:     features,
		settings:     settings,
		certificates: certificates,
		routes:       routing.NewBuilder(features, settings),
		Builder:      servername.NewBuilder(settings, certificates),
	}
}

// Try sets what tests directives, before anything is built. It returns b.
func (b *Builder) Try(try feature.Try) *Builder {
	b.settings.Schema.Try = try
	return b
}

// Sockets sets what is known of the addresses of this machine, before anything is built. It returns b.
func (b *Builder) Sockets(s feature.Sockets) *Builder {
	b.settings.Schema.Sockets = s
	return b
}

// Refer lists what an Ingress names under the ConfigMap with the options, see
// setting.Reader.
func (b *Builder) Refer(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References {
	return b.settings.Refer(ing, options)
}

// Keys are the values of the ConfigMap with the options alone.
func (b *Builder) Keys(v View) feature.Values { return b.settings.Options(v).Config.Values() }

// Host builds one host, see routing.Builder.Host.
func (b *Builder) Host(name string, v View) (h model.Host, found bool, fs []finding.Finding) {
	return b.routes.Host(name, v)
}
