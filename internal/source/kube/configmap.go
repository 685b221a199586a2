package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (s *Source) newConfigMaps() *fetcher {
	return s.newFetcher("ConfigMap", s.settings.needs().configMaps, func(name types.NamespacedName) requests {
		return requestsOf(s.settings.Clients.Objects.ConfigMaps(name.Namespace), named(name.Name).String())
	}, s.changed)
}

// followConfigMaps follows the metadata of ConfigMaps from the first subscription
// until ctx ends.
func (s *Source) followConfigMaps(ctx context.Context) {
	select {
	case <-s.configMapsWanted:
	case <-ctx.Done():
		return
	}
	client := s.settings.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(s.settings.Namespace)
	s.follow(ctx, &reflection{
		s.settings.needs().configMaps, &metav1.PartialObjectMetadata{}, s.configMaps.metadata, requestsOf(client, ""), s.configMaps.refuse,
	})
}
