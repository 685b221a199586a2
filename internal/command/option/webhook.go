package option

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Webhook are the flags of the admission webhook.
type Webhook struct {
	WebhookAddress, WebhookCertificate, WebhookKey string
	SelfSigned
}

func (o *Webhook) addWebhookFlags(f *pflag.FlagSet) {
	f.StringVar(&o.WebhookAddress, "validating-webhook", "", "HOST:PORT or :PORT of the admission webhook, which refuses invalid Ingresses (default: none)")
	f.StringVar(&o.WebhookCertificate, "validating-webhook-certificate", "", "PEM file with the certificate of the admission webhook; it is read again when it changes")
	f.StringVar(&o.WebhookKey, "validating-webhook-key", "", "PEM file with the key of --validating-webhook-certificate")
	o.addSelfSignedFlags(f)
	f.Bool("disable-full-test", false, "has no effect: the admission webhook always reviews an Ingress with those that share its hosts, and nothing else")
}

// checkWebhook rejects invalid values.
func (o Webhook) checkWebhook() error {
	if o.WebhookAddress == "" {
		return nil
	}
	if !o.WebhookSelfSigned && (o.WebhookCertificate == "" || o.WebhookKey == "") {
		return errors.New("--validating-webhook requires --validating-webhook-certificate and --validating-webhook-key, or --webhook-self-signed")
	}
	_, err := o.webhookPort()
	return err
}

func (o Webhook) webhookPort() (uint16, error) {
	if port, err := portOf(o.WebhookAddress); err == nil {
		return port, nil
	}
	return 0, fmt.Errorf("invalid value %q of --validating-webhook: must be HOST:PORT or :PORT", o.WebhookAddress)
}

// webhookPorts is the port of the webhook, if there is one.
func (o Webhook) webhookPorts() []PortFlag {
	if port, err := o.webhookPort(); err == nil {
		return []PortFlag{{"validating-webhook", port}}
	}
	return nil
}
