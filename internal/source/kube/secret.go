package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/headgate/headgate/internal/source"
)

// fetchers is how many Secrets are fetched at a time.
const fetchers = 4

// secrets brings together what is known of Secrets: TLS Secrets with their
// data, and the metadata of all others with the data of those that are wanted.
type secrets struct {
	outbox *outbox
	// fetch returns nil if there is no such Secret, or if it is a TLS Secret.
	fetch func(context.Context, types.NamespacedName) (secret *corev1.Secret, version string, err error)
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu  sync.Mutex
	tls map[types.NamespacedName]struct{}
	// versions has the version of every other Secret.
	versions map[types.NamespacedName]string
	wanted   map[types.NamespacedName]*wanted
}

// A wanted is a Secret that somebody refers to.
type wanted struct {
	// object is the data as it was delivered, nil if none was: there is none,
	// it is a TLS Secret, or it was not fetched yet.
	object *corev1.Secret
	// version is the one that was fetched.
	version string
	waiting []*settlement
}

// A settlement is the number of Secrets that must still be fetched before a
// call of want is settled.
type settlement struct {
	left int
	done chan struct{}
}

func newSecrets(out *outbox, fetch func(context.Context, types.NamespacedName) (*corev1.Secret, string, error)) *secrets {
	return &secrets{
		outbox: out, fetch: fetch,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstPause, refusedPause)),
		tls:      map[types.NamespacedName]struct{}{},
		versions: map[types.NamespacedName]string{},
		wanted:   map[types.NamespacedName]*wanted{},
	}
}

func (s *secrets) want(added, removed []types.NamespacedName) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range removed {
		if w := s.wanted[name]; w != nil {
			delete(s.wanted, name)
			s.settle(w)
			s.drop(name, w)
		}
	}
	all := &settlement{done: make(chan struct{})}
	for _, name := range added {
		w := s.wanted[name]
		if w == nil {
			w = &wanted{}
			s.wanted[name] = w
		}
		if version, ok := s.versions[name]; ok && version != w.version {
			all.left++
			w.waiting = append(w.waiting, all)
			s.queue.Add(name)
		}
	}
	if all.left == 0 {
		s.outbox.settle(all.done)
	}
	return all.done
}

// settle ends the wait for a Secret.
func (s *secrets) settle(w *wanted) {
	for _, waiting := range w.waiting {
		if waiting.left--; waiting.left == 0 {
			s.outbox.settle(waiting.done)
		}
	}
	w.waiting = nil
}

// drop takes back what was delivered of a Secret.
func (s *secrets) drop(name types.NamespacedName, w *wanted) {
	was := w.object
	w.object, w.version = nil, ""
	if _, tls := s.tls[name]; was != nil && !tls {
		s.outbox.put(source.Change{Object: was, Deleted: true})
	}
}

// tlsChanged takes a TLS Secret. A Secret's type never changes, but a deleted
// one may come back with another type; which of the two is told first is open.
func (s *secrets) tlsChanged(object metav1.Object, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	w := s.wanted[name]
	if !deleted {
		s.tls[name] = struct{}{}
		s.outbox.put(source.Change{Object: object})
		return
	}
	delete(s.tls, name)
	if w != nil && w.object != nil {
		s.outbox.put(source.Change{Object: w.object})
		return
	}
	s.outbox.put(source.Change{Object: object, Deleted: true})
}

// metadataChanged takes a Secret of another type.
func (s *secrets) metadataChanged(object metav1.Object, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	w := s.wanted[name]
	if deleted {
		delete(s.versions, name)
		if w != nil {
			s.settle(w)
			s.drop(name, w)
		}
		return
	}
	version := versionOf(object)
	s.versions[name] = version
	if w != nil && w.version != version {
		s.queue.Add(name)
	}
}

// versionOf tells versions apart, also those of a Secret that was deleted and
// made anew.
func versionOf(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// run fetches what is wanted until ctx ends.
func (s *secrets) run(ctx context.Context) {
	var group sync.WaitGroup
	for range fetchers {
		group.Go(func() {
			for {
				name, shutdown := s.queue.Get()
				if shutdown {
					return
				}
				s.update(ctx, name)
				s.queue.Done(name)
			}
		})
	}
	<-ctx.Done()
	s.queue.ShutDown()
	group.Wait()
}

// update fetches a Secret if its newest version was not fetched yet.
func (s *secrets) update(ctx context.Context, name types.NamespacedName) {
	if !s.due(name) {
		s.queue.Forget(name)
		return
	}
	secret, version, err := s.fetch(ctx, name)
	if err != nil {
		s.queue.AddRateLimited(name)
		return
	}
	s.queue.Forget(name)
	s.take(name, secret, version)
}

func (s *secrets) due(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wanted[name]
	version, ok := s.versions[name]
	return w != nil && ok && version != w.version
}

// take takes what was fetched. What the metadata says meanwhile goes before
// it: a Secret that is gone stays gone, and a newer one is in the queue again.
func (s *secrets) take(name types.NamespacedName, secret *corev1.Secret, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wanted[name]
	if w == nil {
		return
	}
	defer s.settle(w)
	if _, ok := s.versions[name]; !ok {
		return
	}
	if secret == nil {
		s.drop(name, w)
		return
	}
	w.version = version
	if w.object != nil && equality.Semantic.DeepEqual(w.object, secret) {
		return
	}
	w.object = secret
	if _, tls := s.tls[name]; !tls {
		s.outbox.put(source.Change{Object: secret})
	}
}

// fetchSecret lists the Secret by its name, which needs no other permission
// than following all of them. A list without a version is the newest.
func (s *Source) fetchSecret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, string, error) {
	asked := resource{"secrets", "", name.Namespace, "to have the data of a Secret that an Ingress names", "what needs it goes without"}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	sent := time.Now()
	list, err := s.settings.Clients.Objects.CoreV1().Secrets(name.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String(),
	})
	if err := s.answered(ctx, asked, "list", sent, err); err != nil {
		return nil, "", fmt.Errorf("fetch Secret %s: %w", name, err)
	}
	if len(list.Items) == 0 || list.Items[0].Type == corev1.SecretTypeTLS {
		return nil, "", nil
	}
	secret := &list.Items[0]
	version := versionOf(secret)
	s.trim(secret)
	return secret, version, nil
}

const fetchTimeout = 10 * time.Second
