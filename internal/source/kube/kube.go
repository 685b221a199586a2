// Package kube is the source that reads a Kubernetes cluster through its API
// and follows its changes.
//
// It knows the API: which resources are read, how to follow them, what to do
// when the API server is away or refuses, and which part of each object
// anybody reads. It must not know what objects mean.
//
// Each resource is listed and watched once; nothing is asked for in turns.
// Where the API server was out of reach the resource is listed anew, and what
// differs is delivered: it may have been restored from an older snapshot, of
// which a watch would tell nothing. For the same reason a watch that ended goes
// on only after a look at the API server's version.
//
// Of Secrets the data of TLS Secrets is followed, and of all others only
// metadata; their data is fetched when somebody asks for them by Want. Of
// ConfigMaps the one with the options is followed. The metadata of the others
// is followed, and the data fetched likewise, from the moment that somebody
// asks for one by WantConfigMaps: until then nobody needs the permission.
//
// The verbs list and watch suffice for everything.
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
)

// Settings say what is read.
type Settings struct {
	Clients Clients
	// Namespace limits what is read to one namespace; empty is all. It limits
	// neither IngressClasses, which have none, nor ConfigMap.
	Namespace string
	// Namespaces are followed, with their labels, if set.
	Namespaces bool
	// ConfigMap is the one that is followed; empty for none.
	ConfigMap types.NamespacedName
	// AnnotationPrefix stands before the names of the annotations that
	// anybody reads, without the slash.
	AnnotationPrefix string
	// Pod is the one that this runs in, empty for none. Its Node is delivered,
	// the only one, and with it what Services and slices say of zones.
	Pod types.NamespacedName
	// Status has Ingresses come with the addresses in their status.
	Status bool
	Log    *slog.Logger
}

// A Source reads one cluster.
type Source struct {
	settings   Settings
	journal    *journal
	queue      *source.Queue
	secrets    *secrets
	configMaps *configMaps

	reflections []*reflection
	ingresses   *mirror
	classes     *mirror
	// classesRefused is closed when IngressClasses may not be listed.
	classesRefused chan struct{}
	// classless: spec.ingressClassName is not told, since nobody could say
	// what it means.
	classless atomic.Bool
}

// New makes a Source. It sends nothing yet.
func New(settings Settings) *Source {
	s := &Source{
		settings:       settings,
		journal:        newJournal(settings.Log),
		queue:          source.NewQueue(),
		classesRefused: make(chan struct{}),
	}
	s.secrets, s.configMaps = s.newSecrets(), s.newConfigMaps()
	s.reflections = s.resources()
	return s
}

// Want says of which Secrets the data is needed from now on, besides that of
// all TLS Secrets, and of which no longer. The channel is closed once what
// there is of the added ones has been delivered. While the API server does not
// give one of them it stays open.
func (s *Source) SubscribeSecrets(added, removed []types.NamespacedName) (delivered <-chan struct{}) {
	return s.secrets.fetcher.subscribe(added, removed)
}

// WantConfigMaps says the same of ConfigMaps, besides the one that is followed.
// Without the permission to list them none are there, and nothing waits; they
// are delivered once they may be listed.
func (s *Source) SubscribeConfigMaps(added, removed []types.NamespacedName) (delivered <-chan struct{}) {
	return s.configMaps.subscribe(added, removed)
}

// UID is that of an object of a resource that is followed, as "ingresses", in
// its newest version; empty if there is none of that name.
func (s *Source) UID(resource string, name types.NamespacedName) types.UID {
	for _, r := range s.reflections {
		if r.Resource != resource {
			continue
		}
		if uid := r.mirror.uid(name); uid != "" {
			return uid
		}
	}
	return ""
}

// Run delivers everything there is in one batch, once all resources have been
// read, and then each change, until ctx ends. What comes while a batch is
// being delivered makes the next one.
//
// It goes on trying while the API server does not answer or refuses. It fails
// only if the namespace that it is limited to does not exist.
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
	group.Go(func() { s.configMaps.fetcher.run(ctx) })
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

// awaitAll waits until every resource was read, or ctx ends.
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

// checkNamespace fails if the namespace to be limited to does not exist. An
// API server that may not be asked is not asked again.
func (s *Source) checkNamespace(ctx context.Context) error {
	name := s.settings.Namespace
	if name == "" {
		return nil
	}
	asked := s.settings.needs().namespace
	for pause := firstPause; ; pause = min(2*pause, unreachablePause) {
		sent := time.Now()
		_, err := s.settings.Clients.Objects.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
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

// Without the permission to list IngressClasses, Ingresses are told apart by
// annotation alone, as the predecessor does it.

func (s *Source) refuseClasses() {
	if s.classes.isComplete() || s.classless.Swap(true) {
		return
	}
	s.ingresses.again()
	close(s.classesRefused)
}

// watchClasses ends the time without IngressClasses, should it have begun.
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
