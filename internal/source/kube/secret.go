package kube

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

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
	tls    sets.Set[types.NamespacedName]
	others map[types.NamespacedName]metav1.Object
}

func (s *Source) newSecrets() *secrets {
	all := &secrets{
		queue: s.queue,
		tls:   sets.Set[types.NamespacedName]{}, others: map[types.NamespacedName]metav1.Object{},
	}
	all.fetcher = s.newFetcher("Secret", s.settings.needs().secrets, func(name types.NamespacedName) requests {
		selector := fields.AndSelectors(named(name.Name), otherSecrets())
		return requestsOf(s.settings.Clients.Objects.Secrets(name.Namespace), selector.String())
	}, all.otherChanged)
	return all
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
		s.tls.Insert(name)
	} else if s.tls.Delete(name); s.others[name] != nil {
		object, deleted = s.others[name], false
	}
	s.queue.Put(source.Change{Object: object, Deleted: deleted})
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
	if !s.tls.Has(name) {
		s.queue.Put(source.Change{Object: object, Deleted: deleted})
	}
}
