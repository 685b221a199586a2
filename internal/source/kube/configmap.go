package kube

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// configMaps are those with a subscription.
type configMaps struct {
	fetcher *fetcher
	// followed needs no subscription and is never fetched: the changes of two
	// views of one object could come in the wrong order.
	followed types.NamespacedName
	// begun is closed, by begin, with the first subscription.
	begun chan struct{}
	begin func()
}

func (s *Source) newConfigMaps() *configMaps {
	c := &configMaps{
		fetcher:  s.newFetcher(s.fetchConfigMap, s.changed),
		followed: s.settings.ConfigMap,
		begun:    make(chan struct{}),
	}
	c.begin = sync.OnceFunc(func() { close(c.begun) })
	return c
}

func (c *configMaps) subscribe(added, removed []types.NamespacedName) <-chan struct{} {
	added = slices.DeleteFunc(slices.Clone(added), func(name types.NamespacedName) bool { return name == c.followed })
	if len(added) > 0 {
		c.begin()
	}
	return c.fetcher.subscribe(added, removed)
}

func (s *Source) fetchConfigMap(ctx context.Context, name types.NamespacedName) (metav1.Object, string, error) {
	asked := s.settings.needs().configMaps
	asked.Namespace = name.Namespace
	asked.Need, asked.Without = "to have the data of a ConfigMap that an Ingress names", "what needs it goes without"
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	return s.fetch(ctx, asked, requestsOf(s.settings.Clients.Objects.CoreV1().ConfigMaps(name.Namespace), selector))
}

// followConfigMaps follows the metadata of ConfigMaps from the first subscription
// until ctx ends.
func (s *Source) followConfigMaps(ctx context.Context) {
	select {
	case <-s.configMaps.begun:
	case <-ctx.Done():
		return
	}
	namespace := s.settings.Namespace
	s.follow(ctx, &reflection{
		Permission: s.settings.needs().configMaps, object: &metav1.PartialObjectMetadata{}, mirror: s.configMaps.fetcher.metadata,
		refused:  s.configMaps.fetcher.refuse,
		requests: requestsOf(s.settings.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace), ""),
	})
}
