package option

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/admission/selfsigned"
	"github.com/headgate/headgate/internal/command/selection"
)

// SelfSigned are the flags for a certificate of the webhook that Headgate makes
// itself.
type SelfSigned struct {
	// WebhookSelfSigned has Headgate make it.
	WebhookSelfSigned             bool
	WebhookConfiguration          string
	WebhookService, WebhookSecret string
}

// webhookName is the default name of the webhook's objects.
const webhookName = "headgate-admission"

func (o *SelfSigned) addSelfSignedFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.WebhookSelfSigned, "webhook-self-signed", false, "make the certificate of the admission webhook, renew it, and write its CA into the ValidatingWebhookConfiguration, instead of reading --validating-webhook-certificate and --validating-webhook-key")
	f.StringVar(&o.WebhookConfiguration, "webhook-configuration", webhookName, "name of the ValidatingWebhookConfiguration, with --webhook-self-signed")
	f.StringVar(&o.WebhookService, "webhook-service", "", "NAMESPACE/NAME of the Service that the ValidatingWebhookConfiguration names, with --webhook-self-signed (default: "+webhookName+" in the namespace of POD_NAMESPACE)")
	f.StringVar(&o.WebhookSecret, "webhook-secret", "", "NAMESPACE/NAME of the Secret to keep the certificate in, with --webhook-self-signed; it is created if it is missing (default: "+webhookName+" in the namespace of POD_NAMESPACE)")
}

// checkSelfSigned rejects invalid values and combinations of these flags with others.
func (o Webhook) checkSelfSigned(folder bool) error {
	named := o.WebhookService != "" || o.WebhookSecret != "" || o.WebhookConfiguration != "" && o.WebhookConfiguration != webhookName
	switch {
	case !o.WebhookSelfSigned && named:
		return errors.New("--webhook-configuration, --webhook-service and --webhook-secret require --webhook-self-signed")
	case !o.WebhookSelfSigned:
		return nil
	case o.WebhookAddress == "":
		return errors.New("--webhook-self-signed requires --validating-webhook")
	case folder:
		return errors.New("--webhook-self-signed keeps the certificate in a cluster, and --manifests-dir serves a folder: remove one of them")
	case o.WebhookCertificate != "":
		return errors.New("--webhook-self-signed and --validating-webhook-certificate are mutually exclusive")
	case o.WebhookKey != "":
		return errors.New("--webhook-self-signed and --validating-webhook-key are mutually exclusive")
	case len(validation.IsDNS1123Subdomain(o.WebhookConfiguration)) > 0:
		return fmt.Errorf("invalid value %q of --webhook-configuration: must be the name of a ValidatingWebhookConfiguration", o.WebhookConfiguration)
	}
	_, badService := selection.ObjectName("webhook-service", o.WebhookService)
	_, badSecret := selection.ObjectName("webhook-secret", o.WebhookSecret)
	return errors.Join(badService, badSecret)
}

// SelfSignedSettings name the objects; own is the namespace of this process. The flags are
// checked already.
func (o SelfSigned) SelfSignedSettings(own string) selfsigned.Settings {
	usual := types.NamespacedName{Namespace: own, Name: webhookName}
	return selfsigned.Settings{
		Configuration: o.WebhookConfiguration, Service: objectOr(o.WebhookService, usual), Secret: objectOr(o.WebhookSecret, usual),
		Timing: selfsigned.DefaultTiming(),
	}
}

// objectOr is the object that a flag names, which is checked already, or the usual one without its value.
func objectOr(value string, usual types.NamespacedName) types.NamespacedName {
	if name, err := selection.ObjectName("", value); err == nil && name.Name != "" {
		return name
	}
	return usual
}
