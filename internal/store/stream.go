package store

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/streamvalue"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// Streams is the ConfigMap with the TCP or UDP services, nil if there is none, and its
// name, empty if there is to be none.
func (s *Store) Streams(protocol string) (*corev1.ConfigMap, types.NamespacedName) {
	var name types.NamespacedName
	switch protocol {
	case model.TCP:
		name = s.settings.TCPServices
	case model.UDP:
		name = s.settings.UDPServices
	}
	if name.Name == "" {
		return nil, name
	}
	return s.configMaps[name], name
}

// ReservedPort is what Headgate itself uses a port for, empty if it does not.
func (s *Store) ReservedPort(port uint16) string { return s.settings.ReservedPorts[port] }

// protocols of streams.
func protocols() []string { return []string{model.TCP, model.UDP} }

// missingStreamsKey is the unit of a ConfigMap itself, for the finding that there is none.
func missingStreamsKey(protocol string) unit.Key {
	return unit.Stream.Key(model.StreamName(protocol, ""))
}

// appendStreams appends all streams.
func (s *Store) appendStreams(keys []unit.Key) []unit.Key {
	for _, protocol := range protocols() {
		object, name := s.Streams(protocol)
		if name.Name != "" {
			keys = append(keys, missingStreamsKey(protocol))
		}
		if object == nil {
			continue
		}
		for port := range object.Data {
			keys = append(keys, unit.Stream.Key(model.StreamName(protocol, port)))
		}
	}
	return keys
}

// reindexStreams appends the streams that a new version of a ConfigMap touches: those whose
// entries differ. It indexes the Services that they name.
func (s *Store) reindexStreams(keys []unit.Key, name types.NamespacedName, was *corev1.ConfigMap) []unit.Key {
	for _, protocol := range protocols() {
		now, of := s.Streams(protocol)
		if name != of {
			continue
		}
		if (was == nil) != (now == nil) {
			keys = append(keys, missingStreamsKey(protocol))
		}
		old, data := dataOf(was), dataOf(now)
		for port, text := range old {
			if next, ok := data[port]; !ok || next != text {
				keys = append(keys, s.indexStream(protocol, port, text, s.streams.remove))
			}
		}
		for port, text := range data {
			if last, ok := old[port]; !ok || last != text {
				keys = append(keys, s.indexStream(protocol, port, text, s.streams.add))
			}
		}
	}
	return keys
}

func dataOf(object *corev1.ConfigMap) map[string]string {
	if object == nil {
		return nil
	}
	return object.Data
}

// indexStream adds or removes the Service that an entry names.
func (s *Store) indexStream(protocol, port, text string, do func(types.NamespacedName, unit.Key)) unit.Key {
	key := unit.Stream.Key(model.StreamName(protocol, port))
	if value, err := streamvalue.Parse(protocol, text); err == nil {
		do(value.Service, key)
		s.markNameDirty(value.Service)
	}
	return key
}
