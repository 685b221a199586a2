// Package kube is the source that reads a Kubernetes cluster through its API
// and follows its changes.
//
// It knows the API: which resources to read, how to follow them, what to do if
// the API server does not answer or rejects requests, and which fields of
// objects are read. It must not know what objects mean.
//
// Each resource is listed and watched once; there is no polling. After the API
// server was unreachable, the resource is listed again, and the differences are
// delivered: the API server may have been restored from an older snapshot, which
// a watch would not notice. For the same reason, a watch is resumed only after
// a check of the API server's version.
//
// TLS Secrets are followed with their data, all others with metadata only; the
// data is fetched for subscriptions (SubscribeSecrets). The ConfigMap with the
// options is followed. The others are handled like Secrets, from the first
// subscription on (SubscribeConfigMaps): without one, no permission is needed.
//
// The verbs list and watch suffice.
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
)

// Settings define what is read.
type Settings struct {
	Clients Clients
	// Namespace is the only namespace to read; empty is all. It applies neither to
	// IngressClasses, which have none, nor to ConfigMap and Services.
	Namespace string
	// Namespaces are followed, with their labels, if set.
	Namespaces bool
	// ConfigMap is the one that is followed; empty for none.
	ConfigMap types.NamespacedName
	// Services are ConfigMaps that are followed too, those with TCP and UDP services.
	Services []types.NamespacedName
	// AnnotationPrefix is the prefix of the annotations that are read, without
	// the slash.
	AnnotationPrefix string
	// Pod is the Pod of this process, empty for none. If it is set, its Node is
	// delivered, and the fields of Services and slices about zones are kept.
	Pod types.NamespacedName
	// Status keeps the addresses in the status of Ingresses.
	Status bool
	Log    *slog.Logger
}

// A Source reads one cluster.
type Source struct {
	settings   Settings
	journal    *journal
	queue      *source.Queue
	secrets    *secrets
	configMaps *fetcher
	// configMapsWanted is closed, by wantConfigMaps, with the first subscription.
	configMapsWanted chan struct{}
	wantConfigMaps   func()

	reflections []*reflection
	ingresses   *mirror
	classes     *mirror
	// classesRefused is closed when IngressClasses may not be listed.
	classesRefused chan struct{}
	// classless: spec.ingressClassName is removed, since the IngressClasses are
	// unknown.
	classless atomic.Bool
}

// New makes a Source. It sends no requests yet.
func New(settings Settings) *Source {
	s := &Source{
		settings:         settings,
		journal:          newJournal(settings.Log),
		queue:            source.NewQueue(),
		classesRefused:   make(chan struct{}),
		configMapsWanted: make(chan struct{}),
	}
	s.wantConfigMaps = sync.OnceFunc(func() { close(s.configMapsWanted) })
	s.secrets, s.configMaps = s.newSecrets(), s.newConfigMaps()
	s.reflections = s.resources()
	return s
}

// SubscribeSecrets adds and removes Secrets whose data is needed, besides TLS
// Secrets. The channel is closed once those of the added ones that exist are
// delivered. It stays open while the API server fails for one of them.
func (s *Source) SubscribeSecrets(added, removed []types.NamespacedName) (delivered <-chan struct{}) {
	return s.secrets.fetcher.subscribe(added, removed)
}

// SubscribeConfigMaps does the same for ConfigMaps, besides the one that is
// followed. Without the permission to list them they count as missing, and the
// channel is closed; they are delivered once they may be listed.
func (s *Source) SubscribeConfigMaps(added, removed []types.NamespacedName) (delivered <-chan struct{}) {
	// The changes of two views of one object could come in the wrong order.
	added = slices.DeleteFunc(slices.Clone(added), s.settings.follows)
	if len(added) > 0 {
		s.wantConfigMaps()
	}
	return s.configMaps.subscribe(added, removed)
}

// UID is that of an object of a resource that is followed, such as "ingresses",
// in its newest version; empty if there is none of that name.
func (s *Source) UID(resource string, name types.NamespacedName) types.UID {
	for _, r := range s.reflections {
		if uid := r.mirror.uid(name); r.Resource == resource && uid != "" {
			return uid
		}
	}
	return ""
}

// Run delivers all objects in one batch, once all resources have been read, and
// then each change, until ctx ends. Changes that come during a delivery are the
// next batch.
//
// It tries again while the API server does not answer or rejects requests. It
// fails only if the namespace that it is limited to does not exist.
func (s *Source) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	if err := s.checkNamespace(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, r := range s.reflections {
		group.Go(func() { s.follow(ctx, r) })
	}
	group.Go(func() { s.secrets.fetcher.run(ctx) })
	group.Go(func() { s.configMaps.run(ctx) })
	group.Go(func() { s.followConfigMaps(ctx) })
	group.Go(func() { s.watchClasses(ctx) })
	group.Go(func() { s.followNode(ctx) })
	if !s.awaitAll(ctx) {
		return nil
	}
	s.journal.served.Store(true)
	s.queue.Run(ctx, deliver, true)
	return nil
}

// awaitAll waits until all resources were read, or ctx ends.
func (s *Source) awaitAll(ctx context.Context) bool {
	for _, r := range s.reflections {
		var refused chan struct{}
		if r.mirror == s.classes {
			refused = s.classesRefused
		}
		select {
		case <-r.mirror.complete:
		case <-refused:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// checkNamespace fails if the only namespace to read does not exist. Without the
// permission to check that, it does not fail.
func (s *Source) checkNamespace(ctx context.Context) error {
	name := s.settings.Namespace
	if name == "" {
		return nil
	}
	asked := s.settings.needs().namespace
	for pause := firstPause; ; pause = min(2*pause, unreachablePause) {
		sent := time.Now()
		_, err := s.settings.Clients.Objects.Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the namespace %s to watch does not exist", name)
		case ctx.Err() != nil:
			return nil
		}
		if s.journal.report(asked, "get", sent, err); err == nil || apierrors.IsForbidden(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// refuseClasses is called without the permission to list IngressClasses: the
// class of an Ingress is then its annotation alone, as in ingress-nginx.
func (s *Source) refuseClasses() {
	if s.classes.isComplete() || s.classless.Swap(true) {
		return
	}
	s.ingresses.again()
	close(s.classesRefused)
}

// watchClasses reverts refuseClasses once IngressClasses could be listed.
func (s *Source) watchClasses(ctx context.Context) {
	select {
	case <-s.classes.complete:
		if s.classless.Swap(false) {
			s.ingresses.again()
		}
	case <-ctx.Done():
	}
}

func (s *Source) ingressChanged(object metav1.Object, deleted bool) {
	if ing, ok := object.(*networkingv1.Ingress); ok && s.classless.Load() && ing.Spec.IngressClassName != nil {
		plain := *ing
		plain.Spec.IngressClassName = nil
		object = &plain
	}
	s.changed(object, deleted)
}

func (s *Source) changed(object metav1.Object, deleted bool) {
	s.queue.Put(source.Change{Object: object, Deleted: deleted})
}
