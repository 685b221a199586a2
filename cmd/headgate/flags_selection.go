package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/snapshot"
	"github.com/headgate/headgate/internal/store"
)

// A selection is the set of flags that select the objects and options to serve. All
// commands that read objects have these flags.
type selection struct {
	configMap          string
	ingressClass       string
	controllerClass    string
	watchWithoutClass  bool
	ingressClassByName bool
	defaultBackend     string
	defaultCertificate string
	disableCatchAll    bool
	deepInspect        bool
	annotationsPrefix  string
	noExternalNames    bool
	localAddresses     bool

	watchNamespace, watchNamespaceSelector string
}

func (s *selection) addSelectionFlags(f *pflag.FlagSet) {
	f.StringVar(&s.configMap, "configmap", "", "NAMESPACE/NAME of the ConfigMap with options")
	f.StringVar(&s.ingressClass, "ingress-class", "nginx", "value of the annotation kubernetes.io/ingress.class to serve")
	f.StringVar(&s.controllerClass, "controller-class", "k8s.io/ingress-nginx", "spec.controller of the IngressClasses to serve")
	f.BoolVar(&s.watchWithoutClass, "watch-ingress-without-class", false, "also serve Ingresses without a class (those of a folder are always served)")
	f.BoolVar(&s.ingressClassByName, "ingress-class-by-name", false, "also serve the IngressClass named by --ingress-class, with any controller")
	f.StringVar(&s.defaultBackend, "default-backend-service", "", "NAMESPACE/NAME of the Service whose first port gets requests that match no rule (default: response 404)")
	f.StringVar(&s.defaultCertificate, "default-ssl-certificate", "", "NAMESPACE/NAME of the Secret with the certificate for names without one (default: a generated certificate)")
	f.BoolVar(&s.disableCatchAll, "disable-catch-all", false, "exclude Ingresses with a spec.defaultBackend")
	f.BoolVar(&s.deepInspect, "deep-inspect", true, "exclude Ingresses whose hosts, paths or TLS sections contain names of system files or directives of NGINX")
	f.StringVar(&s.annotationsPrefix, "annotations-prefix", "nginx.ingress.kubernetes.io", "prefix of the annotations")
	f.StringVar(&s.watchNamespaceSelector, "watch-namespace-selector", "", "labels of the namespaces to serve (default: all)")
	f.StringVar(&s.watchNamespace, "watch-namespace", "", "the only namespace to serve (default: all)")
	f.BoolVar(&s.noExternalNames, "disable-svc-external-name", false, "serve Services of type ExternalName without endpoints")
	f.BoolVar(&s.localAddresses, "allow-local-svc-external-name", false, "allow loopback, link-local and unspecified addresses for names in Ingresses and in Services of type ExternalName (always allowed in a folder)")
}

func (s selection) checkSelection() error {
	if s.watchNamespace != "" && s.watchNamespaceSelector != "" {
		return errors.New("--watch-namespace and --watch-namespace-selector are mutually exclusive")
	}
	return nil
}

// storeSettings converts the flags. With classless, Ingresses need no IngressClass,
// as in a folder.
func (s selection) storeSettings(classless bool) (store.Settings, error) {
	settings := store.Settings{
		IngressClass: s.ingressClass, ControllerClass: s.controllerClass,
		WatchWithoutClass: s.watchWithoutClass || classless, Classless: classless,
		Scope:       spec.Scope{DeepInspect: s.deepInspect, NoCatchAll: s.disableCatchAll},
		ClassByName: s.ingressClassByName, NoExternalNames: s.noExternalNames,
		// The administrator writes a folder, and its services may be on the same
		// machine.
		LocalAddresses:  s.localAddresses || classless,
		ManualEndpoints: classless,
	}
	var err error
	if settings.ConfigMap, err = objectName("configmap", s.configMap); err != nil {
		return store.Settings{}, err
	}
	if settings.DefaultBackend, err = objectName("default-backend-service", s.defaultBackend); err != nil {
		return store.Settings{}, err
	}
	if settings.DefaultCertificate, err = objectName("default-ssl-certificate", s.defaultCertificate); err != nil {
		return store.Settings{}, err
	}
	if s.watchNamespaceSelector != "" {
		if settings.Namespaces, err = labels.Parse(s.watchNamespaceSelector); err != nil {
			return store.Settings{}, fmt.Errorf("invalid value of --watch-namespace-selector: %w", err)
		}
	}
	return settings, nil
}

// snapshotSettings converts the flags for a snapshot of a folder.
func (s selection) snapshotSettings() (snapshot.Settings, error) {
	if err := s.checkSelection(); err != nil {
		return snapshot.Settings{}, err
	}
	settings, err := s.storeSettings(true)
	if err != nil {
		return snapshot.Settings{}, err
	}
	return snapshot.Settings{
		Store: settings, Features: all.Features(), AnnotationPrefix: s.annotationsPrefix, Namespace: s.watchNamespace,
	}, nil
}
