package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/headgate/headgate/internal/admission"
	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/admission/selfsigned"
	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/trial"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/source"
)

// A webhook is the admission webhook; nil if there is none.
type webhook struct {
	server *admission.Server
	stop   func()
}

// startWebhook opens the port, and has the reviewer follow what the source delivers.
func (o program) startWebhook(from *from, process *nginx.Process, m *metrics.Metrics, families *metrics.Families, log *slog.Logger) (*webhook, error) {
	if o.WebhookAddress == "" {
		return nil, nil
	}
	reviewer := review.New(review.Settings{
		Store: from.objects, Features: all.Features(), AnnotationPrefix: o.AnnotationsPrefix, Namespace: o.WatchNamespace,
		Lacking: feature.Lacking(process.Capabilities().Has), Tester: trial.TestBy(process), Measure: families != nil,
	})
	settings := admission.Settings{
		Reviewed: reporter(families.Webhook()),
		Address:  o.WebhookAddress, CertificateFile: o.WebhookCertificate, KeyFile: o.WebhookKey,
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

// keeper keeps the certificate; nil without --webhook-self-signed.
func (o program) keeper(clients *client.Clients, own string, log *slog.Logger) *selfsigned.Keeper {
	if !o.WebhookSelfSigned {
		return nil
	}
	s := o.SelfSignedSettings(own)
	s.Client, s.Log = clients, log
	return selfsigned.New(s)
}
