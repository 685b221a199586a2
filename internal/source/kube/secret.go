package kube

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
)

// secrets merges TLS Secrets, which are followed with their data, and those of
// the others that have a subscription. The type of a Secret never changes, but a
// deleted one may be created again with another type. The order of the two
// changes is not defined: the TLS Secret takes precedence.
type secrets struct {
	queue   *source.Queue
	fetcher *fetcher

	mu     sync.Mutex
	tls    map[types.NamespacedName]struct{}
	others map[types.NamespacedName]metav1.Object
}

func (s *Source) newSecrets() *secrets {
	all := &secrets{
		queue: s.queue,
		tls:   map[types.NamespacedName]struct{}{}, others: map[types.NamespacedName]metav1.Object{},
	}
	all.fetcher = s.newFetcher(s.fetchSecret, all.otherChanged)
	return all
}

// fetchSecret fetches a Secret that is not a TLS Secret.
func (s *Source) fetchSecret(ctx context.Context, name types.NamespacedName) (metav1.Object, string, error) {
	asked := s.settings.needs().secrets
	asked.Namespace = name.Namespace
	asked.Need, asked.Without = "to have the data of a Secret that an Ingress names", "what needs it goes without"
	selector := fields.AndSelectors(fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name), otherSecrets())
	return s.fetch(ctx, asked, requestsOf(s.settings.Clients.Objects.CoreV1().Secrets(name.Namespace), selector.String()))
}

// otherSecrets selects the Secrets whose data is not followed. It excludes those
// with Helm releases, which an Ingress can't use.
func otherSecrets() fields.Selector {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("type", string(corev1.SecretTypeTLS)),
		fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"),
	)
}

func (s *secrets) tlsChanged(object metav1.Object, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	if !deleted {
		s.tls[name] = struct{}{}
		s.queue.Put(source.Change{Object: object})
		return
	}
	delete(s.tls, name)
	if other, ok := s.others[name]; ok {
		s.queue.Put(source.Change{Object: other})
		return
	}
	s.queue.Put(source.Change{Object: object, Deleted: true})
}

func (s *secrets) otherChanged(object metav1.Object, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	if deleted {
		delete(s.others, name)
	} else {
		s.others[name] = object
	}
	if _, tls := s.tls[name]; !tls {
		s.queue.Put(source.Change{Object: object, Deleted: deleted})
	}
}
