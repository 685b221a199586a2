package kube

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// A mirror holds the trimmed objects of one resource, and reports changes. A
// reflector fills it. The same objects are delivered, so they are in memory once.
type mirror struct {
	trim func(metav1.Object)
	// changed is called with the new version, or with the last one of an object
	// that is gone. It must not wait.
	changed func(object metav1.Object, deleted bool)

	mu    sync.Mutex
	known map[types.NamespacedName]metav1.Object

	// complete is closed when the mirror was filled for the first time.
	complete chan struct{}
	filled   sync.Once
}

var _ cache.TransformingStore = (*mirror)(nil)

func newMirror(trim func(metav1.Object), changed func(metav1.Object, bool)) *mirror {
	return &mirror{
		trim: trim, changed: changed,
		known: map[types.NamespacedName]metav1.Object{}, complete: make(chan struct{}),
	}
}

// Transformer trims what a streaming list collects before it replaces all.
func (m *mirror) Transformer() cache.TransformFunc {
	return func(value any) (any, error) {
		object, err := meta.Accessor(value)
		if err != nil {
			return nil, fmt.Errorf("trim an object: %w", err)
		}
		m.trim(object)
		return value, nil
	}
}

// Add puts an object.
func (m *mirror) Add(value any) error {
	object, err := meta.Accessor(value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(object)
	return nil
}

// Update puts an object.
func (m *mirror) Update(value any) error { return m.Add(value) }

func (m *mirror) put(object metav1.Object) {
	m.trim(object)
	name := nameOf(object)
	if was, ok := m.known[name]; ok && equality.Semantic.DeepEqual(was, object) {
		return
	}
	m.known[name] = object
	m.changed(object, false)
}

// Delete removes an object.
func (m *mirror) Delete(value any) error {
	object, err := meta.Accessor(value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(nameOf(object))
	return nil
}

func (m *mirror) remove(name types.NamespacedName) {
	if was, ok := m.known[name]; ok {
		delete(m.known, name)
		m.changed(was, true)
	}
}

// Replace takes the list of all objects: others are gone.
func (m *mirror) Replace(values []any, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := sets.New[types.NamespacedName]()
	for _, value := range values {
		object, err := meta.Accessor(value)
		if err != nil {
			return err
		}
		there.Insert(nameOf(object))
		m.put(object)
	}
	for name := range m.known {
		if !there.Has(name) {
			m.remove(name)
		}
	}
	m.filled.Do(func() { close(m.complete) })
	return nil
}

// Resync does nothing: no change gets lost.
func (m *mirror) Resync() error { return nil }

// again reports all objects as if they had just come.
func (m *mirror) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, object := range m.known {
		m.changed(object, false)
	}
}

// uid is that of the object of that name, empty if there is none.
func (m *mirror) uid(name types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if object, ok := m.known[name]; ok {
		return object.GetUID()
	}
	return ""
}

func (m *mirror) isComplete() bool {
	select {
	case <-m.complete:
		return true
	default:
		return false
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
