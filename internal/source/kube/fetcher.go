package kube

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/source/follow"
)

const (
	// maxFetches is how many objects of a resource are fetched at a time.
	maxFetches   = 4
	fetchTimeout = 10 * time.Second
)

// A fetcher follows the versions of all objects of one resource, and fetches
// those with a subscription.
type fetcher struct {
	// fetch returns nil if there is no such object.
	fetch    func(context.Context, types.NamespacedName) (object metav1.Object, version string, err error)
	follower *follow.Follower[types.NamespacedName]
	// metadata has that of all objects.
	metadata *mirror
	// refused is closed, by refuse, when the permission to list the metadata is
	// missing: then there is nothing to wait for.
	refused chan struct{}
	refuse  func()
	// listed: an object without a version does not exist, or can't be listed.
	listed atomic.Bool

	mu       sync.Mutex
	versions map[types.NamespacedName]string
}

// newFetcher makes a fetcher of a kind of objects, of which one selects the one of
// that name. changed is called with objects that were fetched, and with those that
// are gone or have no subscription any more. It must not wait.
func (s *Source) newFetcher(
	kind string, asked permission.Permission, one func(types.NamespacedName) requests, changed func(metav1.Object, bool),
) *fetcher {
	asked.Need, asked.Without = "to read a "+kind+" that an Ingress names", "the "+kind+" counts as missing"
	f := &fetcher{
		fetch: func(ctx context.Context, name types.NamespacedName) (metav1.Object, string, error) {
			asked := asked
			asked.Namespace = name.Namespace
			return s.fetch(ctx, asked, one(name))
		},
		refused: make(chan struct{}), versions: map[types.NamespacedName]string{},
		follower: follow.New[types.NamespacedName](follow.Settings{
			Name: "kube", Slots: follow.Slots{Known: maxFetches, New: maxFetches, Failed: maxFetches}, Queue: s.queue, Changed: changed, Log: s.settings.Log,
		}),
	}
	f.refuse = sync.OnceFunc(func() { close(f.refused) })
	f.metadata = newMirror(s.trim, f.metadataChanged)
	return f
}

func (f *fetcher) subscribe(added, removed []types.NamespacedName) <-chan struct{} {
	return f.follower.Subscribe(added, removed, func(name types.NamespacedName) follow.Job { return &fetchJob{fetcher: f, name: name} })
}

func (f *fetcher) metadataChanged(object metav1.Object, deleted bool) {
	name := nameOf(object)
	f.mu.Lock()
	if deleted {
		delete(f.versions, name)
	} else {
		f.versions[name] = versionOf(object)
	}
	f.mu.Unlock()
	f.follower.Again(name)
}

// versionOf differs for each version, also of an object that was deleted and
// created again.
func versionOf(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// run fetches objects until ctx ends.
func (f *fetcher) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.follower.Run(ctx) })
	select {
	case <-f.metadata.complete:
	case <-f.refused:
	case <-ctx.Done():
	}
	// Now it is known which objects do not exist.
	f.listed.Store(true)
	f.follower.AllAgain()
	group.Wait()
}

// fetchJob is the Job of an object that an Ingress refers to.
type fetchJob struct {
	*fetcher
	name types.NamespacedName
	// version is that of the last fetch.
	version  string
	failures int
}

// Owner is the object itself: no two objects share slots.
func (f *fetchJob) Owner() string { return f.name.String() }

// Known answers without the API server if the newest version was fetched, or if
// there is none.
func (f *fetchJob) Known() (answer follow.Answer, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	version, ok := f.versions[f.name]
	if ok && version != f.version {
		return follow.Answer{}, false
	}
	if !ok {
		f.version = ""
	}
	return follow.Answer{Gone: !ok, Open: !ok && !f.listed.Load()}, true
}

// Fetch fetches the object. The metadata takes precedence: an object that is gone
// meanwhile stays gone, and a newer one is fetched again.
func (f *fetchJob) Fetch(ctx context.Context) follow.Answer {
	object, version, err := f.fetch(ctx, f.name)
	if err != nil {
		pause := min(firstPause<<min(f.failures, 10), refusedPause)
		f.failures++
		return follow.Answer{Open: true, Pause: pause, Err: err}
	}
	f.failures = 0
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.versions[f.name]; !ok || object == nil {
		f.version = ""
		return follow.Answer{Gone: true}
	}
	f.version = version
	return follow.Answer{Object: object}
}

// fetch gets the one object that the requests select; nil if there is none. It
// uses a list, which needs the same permission as following all objects. A list
// request without a version returns the newest one.
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
