package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/headgate/headgate/internal/permission"
	"github.com/headgate/headgate/internal/source"
)

const (
	// fetchers is how many objects of a resource are fetched at a time.
	fetchers     = 4
	fetchTimeout = 10 * time.Second
)

// A demand keeps the versions of all objects of one resource, and fetches those
// that are wanted.
type demand struct {
	queued *source.Queue
	// fetch returns nil if there is no such object.
	fetch func(context.Context, types.NamespacedName) (object metav1.Object, version string, err error)
	// changed is told what was fetched, and what of it is gone or no longer
	// wanted. It must not wait.
	changed func(object metav1.Object, deleted bool)
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// metadata is of all objects.
	metadata *mirror
	// refused is closed, by refuse, when the metadata may not be listed: until
	// it may, there is nothing to wait for.
	refused chan struct{}
	refuse  func()

	mu       sync.Mutex
	versions map[types.NamespacedName]string
	wanted   map[types.NamespacedName]*wanted
}

// A wanted is an object that somebody refers to.
type wanted struct {
	// object is what was fetched, nil if nothing was.
	object  metav1.Object
	version string
	waiting []*settlement
}

// A settlement is the number of objects that must still be fetched, or looked
// for, before a call of want is settled.
type settlement struct {
	left int
	done chan struct{}
}

func (s *Source) newDemand(
	fetch func(context.Context, types.NamespacedName) (metav1.Object, string, error), changed func(metav1.Object, bool),
) *demand {
	d := &demand{
		queued: s.queue, fetch: fetch, changed: changed,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstPause, refusedPause)),
		refused:  make(chan struct{}),
		versions: map[types.NamespacedName]string{},
		wanted:   map[types.NamespacedName]*wanted{},
	}
	d.refuse = sync.OnceFunc(func() { close(d.refused) })
	d.metadata = newMirror(s.trim, d.metadataChanged)
	return d
}

func (d *demand) want(added, removed []types.NamespacedName) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range removed {
		if w := d.wanted[name]; w != nil {
			delete(d.wanted, name)
			d.drop(w)
			d.settle(w)
		}
	}
	listed := d.isListed()
	all := &settlement{done: make(chan struct{})}
	for _, name := range added {
		w := d.wanted[name]
		if w == nil {
			w = &wanted{}
			d.wanted[name] = w
		}
		version, ok := d.versions[name]
		if !ok && listed || ok && version == w.version {
			continue
		}
		all.left++
		w.waiting = append(w.waiting, all)
		if ok {
			d.queue.Add(name)
		}
	}
	if all.left == 0 {
		d.queued.CloseDelivered(all.done)
	}
	return all.done
}

// isListed tells whether an object without a version is known not to be there,
// or nobody will say.
func (d *demand) isListed() bool {
	select {
	case <-d.refused:
		return true
	default:
		return d.metadata.isComplete()
	}
}

// settleMissing ends the wait for objects that are not there, once that is
// known.
func (d *demand) settleMissing(ctx context.Context) {
	select {
	case <-d.metadata.complete:
	case <-d.refused:
	case <-ctx.Done():
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, w := range d.wanted {
		if _, ok := d.versions[name]; !ok {
			d.settle(w)
		}
	}
}

// settle ends the wait for an object.
func (d *demand) settle(w *wanted) {
	for _, waiting := range w.waiting {
		if waiting.left--; waiting.left == 0 {
			d.queued.CloseDelivered(waiting.done)
		}
	}
	w.waiting = nil
}

// drop takes back what was told of an object.
func (d *demand) drop(w *wanted) {
	was := w.object
	w.object, w.version = nil, ""
	if was != nil {
		d.changed(was, true)
	}
}

func (d *demand) metadataChanged(object metav1.Object, deleted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := nameOf(object)
	w := d.wanted[name]
	if deleted {
		delete(d.versions, name)
		if w != nil {
			d.drop(w)
			d.settle(w)
		}
		return
	}
	version := versionOf(object)
	d.versions[name] = version
	if w != nil && w.version != version {
		d.queue.Add(name)
	}
}

// versionOf tells versions apart, also those of an object that was deleted and
// made anew.
func versionOf(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// run fetches what is wanted until ctx ends.
func (d *demand) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { d.settleMissing(ctx) })
	for range fetchers {
		group.Go(func() {
			for {
				name, shutdown := d.queue.Get()
				if shutdown {
					return
				}
				d.update(ctx, name)
				d.queue.Done(name)
			}
		})
	}
	<-ctx.Done()
	d.queue.ShutDown()
	group.Wait()
}

// update fetches an object if its newest version was not fetched yet.
func (d *demand) update(ctx context.Context, name types.NamespacedName) {
	if !d.due(name) {
		d.queue.Forget(name)
		return
	}
	object, version, err := d.fetch(ctx, name)
	if err != nil {
		d.queue.AddRateLimited(name)
		return
	}
	d.queue.Forget(name)
	d.take(name, object, version)
}

func (d *demand) due(name types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.wanted[name]
	version, ok := d.versions[name]
	return w != nil && ok && version != w.version
}

// take takes what was fetched. What the metadata says meanwhile goes before
// it: an object that is gone stays gone, and a newer one is in the queue again.
func (d *demand) take(name types.NamespacedName, object metav1.Object, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.wanted[name]
	if w == nil {
		return
	}
	defer d.settle(w)
	if _, ok := d.versions[name]; !ok {
		return
	}
	if object == nil {
		d.drop(w)
		return
	}
	w.version = version
	if w.object != nil && equality.Semantic.DeepEqual(w.object, object) {
		return
	}
	w.object = object
	d.changed(object, false)
}

// fetch asks for the one object that the requests select; nil if there is none.
// It lists, which needs no other permission than following all of them. A list
// without a version is the newest.
func (s *Source) fetch(ctx context.Context, asked permission.Permission, selecting requests) (object metav1.Object, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	sent := time.Now()
	list, err := selecting.list(ctx, metav1.ListOptions{})
	if err := s.answered(ctx, asked, "list", sent, err); err != nil {
		return nil, "", fmt.Errorf("fetch one of %s: %w", asked, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return nil, "", err
	}
	if object, err = meta.Accessor(items[0]); err != nil {
		return nil, "", err
	}
	version = versionOf(object)
	s.trim(object)
	return object, version, nil
}
