package run

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/cluster/limitstore"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
)

// limitStoreCapability is what features can do with the store.
func (o program) limitStoreCapability() []string {
	if o.LimitStore.Address.URL == "" {
		return nil
	}
	return []string{string(feature.LimitStore)}
}

// startLimitStore has NGINX count together with other replicas until stop is called.
func (o program) startLimitStore(socket string, registry prometheus.Registerer, log *slog.Logger) (stop func(), err error) {
	if o.LimitStore.Address.URL == "" {
		return func() {}, nil
	}
	name, client := feature.CountingTogether(all.Features()), dataplane.New(socket)
	store, err := limitstore.New(limitstore.Settings{
		Address: o.LimitStore.Address, Registry: registry, Log: log,
		Ask: func(ctx context.Context, question, answer any) error {
			return client.Feature(ctx, name, question, answer)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--limit-store: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		store.Run(ctx)
		client.CloseIdle()
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}
