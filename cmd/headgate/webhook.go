package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/admission"
	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/source"
)

// webhookOptions are the flags of the admission webhook.
type webhookOptions struct {
	webhookAddress, webhookCertificate, webhookKey string
	selfSignedOptions
}

func (o *webhookOptions) addWebhookFlags(f *pflag.FlagSet) {
	f.StringVar(&o.webhookAddress, "validating-webhook", "", "HOST:PORT or :PORT of the admission webhook, which refuses invalid Ingresses (default: none)")
	f.StringVar(&o.webhookCertificate, "validating-webhook-certificate", "", "PEM file with the certificate of the admission webhook; it is read again when it changes")
	f.StringVar(&o.webhookKey, "validating-webhook-key", "", "PEM file with the key of --validating-webhook-certificate")
	o.addSelfSignedFlags(f)
	f.Bool("disable-full-test", false, "has no effect: the admission webhook always reviews an Ingress with those that share its hosts, and nothing else")
}

// checkWebhook rejects invalid values.
func (o webhookOptions) checkWebhook() error {
	if o.webhookAddress == "" {
		return nil
	}
	if !o.selfSigned && (o.webhookCertificate == "" || o.webhookKey == "") {
		return errors.New("--validating-webhook requires --validating-webhook-certificate and --validating-webhook-key, or --webhook-self-signed")
	}
	_, err := o.webhookPort()
	return err
}

func (o webhookOptions) webhookPort() (uint16, error) {
	_, text, err := net.SplitHostPort(o.webhookAddress)
	if err == nil {
		var port uint64
		if port, err = strconv.ParseUint(text, 10, 16); err == nil && port > 0 {
			return uint16(port), nil
		}
	}
	return 0, fmt.Errorf("invalid value %q of --validating-webhook: must be HOST:PORT or :PORT", o.webhookAddress)
}

// webhookPorts is the port of the webhook, if there is one.
func (o webhookOptions) webhookPorts() []portFlag {
	if port, err := o.webhookPort(); err == nil {
		return []portFlag{{"validating-webhook", port}}
	}
	return nil
}

// A webhook is the admission webhook; nil if there is none.
type webhook struct {
	server *admission.Server
	stop   func()
}

// startWebhook opens the port, and has the reviewer follow what the source delivers.
func (o options) startWebhook(from *from, process *nginx.Process, m *metrics.Metrics, families *metrics.Families, log *slog.Logger) (*webhook, error) {
	if o.webhookAddress == "" {
		return nil, nil
	}
	reviewer := review.New(review.Settings{
		Store: from.objects, Features: all.Features(), AnnotationPrefix: o.annotationsPrefix, Namespace: o.watchNamespace,
		Lacking: feature.Lacking(process.Capabilities().Has), Tester: controller.TestBy(process), Measure: families != nil,
	})
	settings := admission.Settings{
		Reviewed: reporter(families.Webhook()),
		Address:  o.webhookAddress, CertificateFile: o.webhookCertificate, KeyFile: o.webhookKey,
		Review: reviewer.Review, Registry: m.Registry, Log: log,
	}
	keeper := o.keeper(from.client, ownNamespace(from.objects.ConfigMap), log)
	if keeper != nil {
		settings.Certificate = keeper.Certificate
	}
	server, err := admission.Listen(settings)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	go reviewer.Run(ctx)
	if keeper != nil {
		go keeper.Run(ctx)
	}
	w := &webhook{server, stop}
	from.run = w.follow(reviewer, from.run)
	return w, nil
}

// follow is a source that delivers to a reviewer too. When it ends, so does the webhook:
// it would review by old objects.
func (w *webhook) follow(reviewer *review.Reviewer, run controller.Source) controller.Source {
	return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		defer w.close()
		return run(ctx, func(ctx context.Context, changes []source.Change) {
			deliver(ctx, changes)
			reviewer.Put(changes...)
		})
	}
}

// Serve serves until close.
func (w *webhook) Serve() error {
	if w == nil {
		return nil
	}
	return w.server.Serve()
}

// lastReviews is how long the end waits for reviews that are going on.
const lastReviews = time.Second

func (w *webhook) close() {
	if w == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastReviews)
	defer cancel()
	// There is nothing to do about a port that can't be closed.
	_ = w.server.Close(ctx)
	w.stop()
}
