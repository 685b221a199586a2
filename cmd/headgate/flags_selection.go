package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/survey"
)

// A selection is what the flags say of which objects are served, and with which
// options. All commands that look at objects have these flags.
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
	f.StringVar(&s.configMap, "configmap", "", "NAMESPACE/NAME of the ConfigMap with the options")
	f.StringVar(&s.ingressClass, "ingress-class", "nginx", "value of the annotation kubernetes.io/ingress.class to serve")
	f.StringVar(&s.controllerClass, "controller-class", "k8s.io/ingress-nginx", "spec.controller of the IngressClasses to serve")
	f.BoolVar(&s.watchWithoutClass, "watch-ingress-without-class", false, "serve Ingresses that name no class too (a folder's are served in any case)")
	f.BoolVar(&s.ingressClassByName, "ingress-class-by-name", false, "serve the IngressClass named by --ingress-class too, whatever its controller")
	f.StringVar(&s.defaultBackend, "default-backend-service", "", "NAMESPACE/NAME of the Service that answers, at its first port, what no rule does (default: a 404)")
	f.StringVar(&s.defaultCertificate, "default-ssl-certificate", "", "NAMESPACE/NAME of the Secret whose certificate is shown where no other fits (default: one that Headgate makes)")
	f.BoolVar(&s.disableCatchAll, "disable-catch-all", false, "leave out Ingresses with a spec.defaultBackend")
	f.BoolVar(&s.deepInspect, "deep-inspect", true, "leave out Ingresses whose hosts, paths or TLS sections name system files or hold directives of NGINX")
	f.StringVar(&s.annotationsPrefix, "annotations-prefix", "nginx.ingress.kubernetes.io", "prefix of the annotations")
	f.StringVar(&s.watchNamespaceSelector, "watch-namespace-selector", "", "labels of the namespaces to serve (default: all)")
	f.StringVar(&s.watchNamespace, "watch-namespace", "", "the only namespace to serve (default: all)")
	f.BoolVar(&s.noExternalNames, "disable-svc-external-name", false, "leave Services of type ExternalName without endpoints")
	f.BoolVar(&s.localAddresses, "allow-local-svc-external-name", false, "let what Ingresses and Services of type ExternalName name lead to loopback, link-local and unspecified addresses (in a folder it may in any case)")
}

func (s selection) checkSelection() error {
	if s.watchNamespace != "" && s.watchNamespaceSelector != "" {
		return errors.New("--watch-namespace and --watch-namespace-selector exclude each other")
	}
	return nil
}

// storeSettings reads the flags. Classless says that Ingresses may do without an
// IngressClass, as in a folder.
func (s selection) storeSettings(classless bool) (store.Settings, error) {
	settings := store.Settings{
		IngressClass: s.ingressClass, ControllerClass: s.controllerClass,
		WatchWithoutClass: s.watchWithoutClass || classless, Classless: classless,
		Scope:       spec.Scope{DeepInspect: s.deepInspect, NoCatchAll: s.disableCatchAll},
		ClassByName: s.ingressClassByName, NoExternalNames: s.noExternalNames,
		// A folder is written by the person who runs Headgate, whose own machine
		// may have the service.
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
			return store.Settings{}, fmt.Errorf("--watch-namespace-selector: %w", err)
		}
	}
	return settings, nil
}

// surveySettings read the flags for a survey of what a folder would serve.
func (s selection) surveySettings() (survey.Settings, error) {
	if err := s.checkSelection(); err != nil {
		return survey.Settings{}, err
	}
	settings, err := s.storeSettings(true)
	if err != nil {
		return survey.Settings{}, err
	}
	return survey.Settings{
		Store: settings, Features: all.Features(), AnnotationPrefix: s.annotationsPrefix, Namespace: s.watchNamespace,
	}, nil
}
