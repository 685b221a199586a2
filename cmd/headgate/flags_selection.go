package main

import (
	"cmp"
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/store"
)

// A selection is the set of flags that select the objects and options to serve. All
// commands that read objects have these flags.
type selection struct {
	// objects are the settings of the store that need no conversion.
	objects store.Settings

	configMap, defaultBackend, defaultCertificate string
	tcpServices, udpServices                      string
	annotationsPrefix                             string
	watchNamespace, watchNamespaceSelector        string
}

func (s *selection) addSelectionFlags(f *pflag.FlagSet) {
	f.StringVar(&s.configMap, "configmap", "", "NAMESPACE/NAME of the ConfigMap with options")
	f.StringVar(&s.tcpServices, "tcp-services-configmap", "", "NAMESPACE/NAME of the ConfigMap with TCP services: each key is a port, and the value is the Service, as NAMESPACE/SERVICE:PORT[:PROXY[:PROXY]]")
	f.StringVar(&s.udpServices, "udp-services-configmap", "", "NAMESPACE/NAME of the ConfigMap with UDP services: each key is a port, and the value is the Service, as NAMESPACE/SERVICE:PORT")
	f.StringVar(&s.objects.IngressClass, "ingress-class", "nginx", "value of the annotation kubernetes.io/ingress.class to serve")
	f.StringVar(&s.objects.ControllerClass, "controller-class", "k8s.io/ingress-nginx", "spec.controller of the IngressClasses to serve")
	f.BoolVar(&s.objects.WatchWithoutClass, "watch-ingress-without-class", false, "also serve Ingresses without a class (those of a folder are always served)")
	f.BoolVar(&s.objects.ClassByName, "ingress-class-by-name", false, "also serve the IngressClass named by --ingress-class, with any controller")
	f.StringVar(&s.defaultBackend, "default-backend-service", "", "NAMESPACE/NAME of the Service whose first port gets requests that match no rule (default: response 404)")
	f.StringVar(&s.defaultCertificate, "default-ssl-certificate", "", "NAMESPACE/NAME of the Secret with the certificate for names without one (default: a generated certificate)")
	f.BoolVar(&s.objects.Scope.NoCatchAll, "disable-catch-all", false, "exclude Ingresses with a spec.defaultBackend")
	f.BoolVar(&s.objects.Scope.DeepInspect, "deep-inspect", true, "exclude Ingresses whose hosts, paths or TLS sections contain names of system files or directives of NGINX")
	f.StringVar(&s.annotationsPrefix, "annotations-prefix", "nginx.ingress.kubernetes.io", "prefix of the annotations")
	f.StringVar(&s.watchNamespaceSelector, "watch-namespace-selector", "", "labels of the namespaces to serve (default: all)")
	f.StringVar(&s.watchNamespace, "watch-namespace", "", "the only namespace to serve (default: all)")
	s.addPassthroughFlag(f)
	f.BoolVar(&s.objects.NoExternalNames, "disable-svc-external-name", false, "don't use the names of Services of type ExternalName: their requests are answered 503")
	f.BoolVar(&s.objects.LocalAddresses, "allow-local-svc-external-name", false, "allow loopback, link-local and unspecified addresses, those of metadata services and Headgate's own for names in Ingresses, for Services of type ExternalName and in EndpointSlices (always allowed in a folder)")
}

func (s selection) checkSelection() error {
	if s.watchNamespace != "" && s.watchNamespaceSelector != "" {
		return errors.New("--watch-namespace and --watch-namespace-selector are mutually exclusive")
	}
	if s.watchNamespace != "" && validation.IsDNS1123Label(s.watchNamespace) != nil {
		return invalidValue(s.watchNamespace, "watch-namespace", "the name of a namespace")
	}
	if validation.IsDNS1123Subdomain(s.annotationsPrefix) != nil {
		return invalidValue(s.annotationsPrefix, "annotations-prefix", "a DNS name")
	}
	if _, err := labels.Parse(s.watchNamespaceSelector); err != nil {
		return invalidValue(s.watchNamespaceSelector, "watch-namespace-selector", "a label selector such as team=a")
	}
	return nil
}

// storeSettings converts the flags. With classless, Ingresses need no IngressClass,
// as in a folder.
func (s selection) storeSettings(classless bool) (store.Settings, error) {
	settings := s.objects
	if classless {
		// The administrator writes a folder, and its services may be on the same
		// machine.
		settings.WatchWithoutClass, settings.Classless, settings.LocalAddresses, settings.ManualEndpoints = true, true, true, true
	}
	var errs [5]error
	settings.ConfigMap, errs[0] = objectName("configmap", s.configMap)
	settings.DefaultBackend, errs[1] = objectName("default-backend-service", s.defaultBackend)
	settings.DefaultCertificate, errs[2] = objectName("default-ssl-certificate", s.defaultCertificate)
	settings.TCPServices, errs[3] = objectName("tcp-services-configmap", s.tcpServices)
	settings.UDPServices, errs[4] = objectName("udp-services-configmap", s.udpServices)
	if err := cmp.Or(errs[:]...); err != nil {
		return store.Settings{}, err
	}
	if s.watchNamespaceSelector != "" {
		selector, err := labels.Parse(s.watchNamespaceSelector)
		if err != nil {
			return store.Settings{}, invalidValue(s.watchNamespaceSelector, "watch-namespace-selector", "a label selector such as team=a")
		}
		settings.Namespaces = selector
	}
	return settings, nil
}

// snapshotSettings converts the flags for a snapshot, as storeSettings does.
func (s selection) snapshotSettings(classless bool) (snapshot.Settings, error) {
	if err := s.checkSelection(); err != nil {
		return snapshot.Settings{}, err
	}
	settings, err := s.storeSettings(classless)
	if err != nil {
		return snapshot.Settings{}, err
	}
	return snapshot.Settings{
		Store: settings, Features: all.Features(), AnnotationPrefix: s.annotationsPrefix, Namespace: s.watchNamespace,
	}, nil
}
