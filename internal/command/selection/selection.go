// Package selection has the flags of the objects that commands read, and reads a cluster once.
//
// It knows how to connect to a cluster, and which objects of it or of a folder count. What is
// made of them is for the commands.
package selection

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/store"
)

// Flags name a cluster, and select the objects and options to serve. All commands that read
// objects have these flags.
type Flags struct {
	// Objects are the settings of the store that need no conversion.
	Objects store.Settings

	configMap, defaultBackend, defaultCertificate string
	tcpServices, udpServices                      string
	watchNamespaceSelector                        string

	// AnnotationsPrefix is that of the annotations.
	AnnotationsPrefix string
	// WatchNamespace is the only namespace to serve; empty for all.
	WatchNamespace string

	Cluster
}

// Add adds the flags.
func (s *Flags) Add(f *pflag.FlagSet) {
	s.addSelectionFlags(f)
	s.addClusterFlags(f)
}

func (s *Flags) addSelectionFlags(f *pflag.FlagSet) {
	f.StringVar(&s.configMap, "configmap", "", "NAMESPACE/NAME of the ConfigMap with options")
	f.StringVar(&s.tcpServices, "tcp-services-configmap", "", "NAMESPACE/NAME of the ConfigMap with TCP services: each key is a port, and the value is the Service, as NAMESPACE/SERVICE:PORT[:PROXY[:PROXY]]")
	f.StringVar(&s.udpServices, "udp-services-configmap", "", "NAMESPACE/NAME of the ConfigMap with UDP services: each key is a port, and the value is the Service, as NAMESPACE/SERVICE:PORT")
	f.StringVar(&s.Objects.IngressClass, "ingress-class", "nginx", "value of the annotation kubernetes.io/ingress.class to serve")
	f.StringVar(&s.Objects.ControllerClass, "controller-class", "k8s.io/ingress-nginx", "spec.controller of the IngressClasses to serve")
	f.BoolVar(&s.Objects.WatchWithoutClass, "watch-ingress-without-class", false, "also serve Ingresses without a class (those of a folder are always served)")
	f.BoolVar(&s.Objects.ClassByName, "ingress-class-by-name", false, "also serve the IngressClass named by --ingress-class, with any controller")
	f.StringVar(&s.defaultBackend, "default-backend-service", "", "NAMESPACE/NAME of the Service whose first port gets requests that match no rule (default: response 404)")
	f.StringVar(&s.defaultCertificate, "default-ssl-certificate", "", "NAMESPACE/NAME of the Secret with the certificate for names without one (default: a generated certificate)")
	f.BoolVar(&s.Objects.Scope.NoCatchAll, "disable-catch-all", false, "exclude Ingresses with a spec.defaultBackend")
	f.BoolVar(&s.Objects.Scope.DeepInspect, "deep-inspect", true, "exclude Ingresses whose hosts, paths or TLS sections contain names of system files or directives of NGINX")
	f.StringVar(&s.AnnotationsPrefix, "annotations-prefix", "nginx.ingress.kubernetes.io", "prefix of the annotations")
	f.StringVar(&s.watchNamespaceSelector, "watch-namespace-selector", "", "labels of the namespaces to serve (default: all)")
	f.StringVar(&s.WatchNamespace, "watch-namespace", "", "the only namespace to serve (default: all)")
	// It is for all commands: whether hosts may have TLS passthrough decides what is served.
	f.BoolVar(&s.Objects.Passthrough, "enable-ssl-passthrough", false, "allow the annotation ssl-passthrough, which passes the TLS connections for a host through to its backend")
	f.BoolVar(&s.Objects.NoExternalNames, "disable-svc-external-name", false, "don't use the names of Services of type ExternalName: their requests are answered 503")
	f.BoolVar(&s.Objects.LocalAddresses, "allow-local-svc-external-name", false, "allow loopback, link-local and unspecified addresses, those of metadata services and Headgate's own for names in Ingresses, for Services of type ExternalName and in EndpointSlices (always allowed in a folder)")
}

// Check rejects invalid values and combinations.
func (s Flags) Check() error {
	if s.WatchNamespace != "" && s.watchNamespaceSelector != "" {
		return errors.New("--watch-namespace and --watch-namespace-selector are mutually exclusive")
	}
	if s.WatchNamespace != "" && validation.IsDNS1123Label(s.WatchNamespace) != nil {
		return usage.InvalidValue(s.WatchNamespace, "watch-namespace", "the name of a namespace")
	}
	if validation.IsDNS1123Subdomain(s.AnnotationsPrefix) != nil {
		return usage.InvalidValue(s.AnnotationsPrefix, "annotations-prefix", "a DNS name")
	}
	if _, err := labels.Parse(s.watchNamespaceSelector); err != nil {
		return usage.InvalidValue(s.watchNamespaceSelector, "watch-namespace-selector", "a label selector such as team=a")
	}
	return nil
}

// Store converts the flags. With classless, Ingresses need no IngressClass,
// as in a folder.
func (s Flags) Store(classless bool) (store.Settings, error) {
	settings := s.Objects
	if classless {
		// The administrator writes a folder, and its services may be on the same
		// machine.
		settings.WatchWithoutClass, settings.Classless, settings.LocalAddresses, settings.ManualEndpoints = true, true, true, true
	}
	var errs [5]error
	settings.ConfigMap, errs[0] = ObjectName("configmap", s.configMap)
	settings.DefaultBackend, errs[1] = ObjectName("default-backend-service", s.defaultBackend)
	settings.DefaultCertificate, errs[2] = ObjectName("default-ssl-certificate", s.defaultCertificate)
	settings.TCPServices, errs[3] = ObjectName("tcp-services-configmap", s.tcpServices)
	settings.UDPServices, errs[4] = ObjectName("udp-services-configmap", s.udpServices)
	if err := cmp.Or(errs[:]...); err != nil {
		return store.Settings{}, err
	}
	if s.watchNamespaceSelector != "" {
		selector, err := labels.Parse(s.watchNamespaceSelector)
		if err != nil {
			return store.Settings{}, usage.InvalidValue(s.watchNamespaceSelector, "watch-namespace-selector", "a label selector such as team=a")
		}
		settings.Namespaces = selector
	}
	return settings, nil
}

// Snapshot converts the flags for a snapshot, as Store does.
func (s Flags) Snapshot(classless bool) (snapshot.Settings, error) {
	if err := s.Check(); err != nil {
		return snapshot.Settings{}, err
	}
	settings, err := s.Store(classless)
	if err != nil {
		return snapshot.Settings{}, err
	}
	return snapshot.Settings{
		Store: settings, Features: all.Features(), AnnotationPrefix: s.AnnotationsPrefix, Namespace: s.WatchNamespace,
	}, nil
}

// ObjectName parses the value of a flag that names an object.
func ObjectName(flag, text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("invalid value %q of --%s: must be NAMESPACE/NAME", text, flag)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
