package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/admission/selfsigned"
	"github.com/headgate/headgate/internal/cluster/client"
)

// selfSignedOptions are the flags for a certificate of the webhook that Headgate makes
// itself.
type selfSignedOptions struct {
	selfSigned                    bool
	webhookConfiguration          string
	webhookService, webhookSecret string
}

// webhookName is the default name of the webhook's objects.
const webhookName = "headgate-admission"

func (o *selfSignedOptions) addSelfSignedFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.selfSigned, "webhook-self-signed", false, "make the certificate of the admission webhook, renew it, and write its CA into the ValidatingWebhookConfiguration, instead of reading --validating-webhook-certificate and --validating-webhook-key")
	f.StringVar(&o.webhookConfiguration, "webhook-configuration", webhookName, "name of the ValidatingWebhookConfiguration, with --webhook-self-signed")
	f.StringVar(&o.webhookService, "webhook-service", "", "NAMESPACE/NAME of the Service that the ValidatingWebhookConfiguration names, with --webhook-self-signed (default: "+webhookName+" in the namespace of POD_NAMESPACE)")
	f.StringVar(&o.webhookSecret, "webhook-secret", "", "NAMESPACE/NAME of the Secret to keep the certificate in, with --webhook-self-signed; it is created if it is missing (default: "+webhookName+" in the namespace of POD_NAMESPACE)")
}

// checkSelfSigned rejects invalid values and combinations of these flags with others.
func (o webhookOptions) checkSelfSigned(folder bool) error {
	named := o.webhookService != "" || o.webhookSecret != "" || o.webhookConfiguration != "" && o.webhookConfiguration != webhookName
	switch {
	case !o.selfSigned && named:
		return errors.New("--webhook-configuration, --webhook-service and --webhook-secret require --webhook-self-signed")
	case !o.selfSigned:
		return nil
	case o.webhookAddress == "":
		return errors.New("--webhook-self-signed requires --validating-webhook")
	case folder:
		return errors.New("--webhook-self-signed keeps the certificate in a cluster, and --manifests-dir serves a folder: remove one of them")
	case o.webhookCertificate != "":
		return errors.New("--webhook-self-signed and --validating-webhook-certificate are mutually exclusive")
	case o.webhookKey != "":
		return errors.New("--webhook-self-signed and --validating-webhook-key are mutually exclusive")
	case len(validation.IsDNS1123Subdomain(o.webhookConfiguration)) > 0:
		return fmt.Errorf("invalid value %q of --webhook-configuration: must be the name of a ValidatingWebhookConfiguration", o.webhookConfiguration)
	}
	_, badService := objectName("webhook-service", o.webhookService)
	_, badSecret := objectName("webhook-secret", o.webhookSecret)
	return errors.Join(badService, badSecret)
}

// selfSignedSettings name the objects; own is the namespace of this process. The flags are
// checked already.
func (o selfSignedOptions) selfSignedSettings(own string) selfsigned.Settings {
	object := func(value string) types.NamespacedName {
		if name, err := objectName("", value); err == nil && name.Name != "" {
			return name
		}
		return types.NamespacedName{Namespace: own, Name: webhookName}
	}
	return selfsigned.Settings{
		Configuration: o.webhookConfiguration, Service: object(o.webhookService), Secret: object(o.webhookSecret),
		Timing: selfsigned.DefaultTiming(),
	}
}

// keeper keeps the certificate; nil without --webhook-self-signed.
func (o selfSignedOptions) keeper(clients *client.Clients, own string, log *slog.Logger) *selfsigned.Keeper {
	if !o.selfSigned {
		return nil
	}
	s := o.selfSignedSettings(own)
	s.Client, s.Log = clients, log
	return selfsigned.New(s)
}
