package headgatetest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

func changesOf(objects []metav1.Object, deleted bool) []source.Change {
	changes := make([]source.Change, len(objects))
	for i, o := range objects {
		changes[i] = source.Change{Object: o, Deleted: deleted}
	}
	return changes
}

// Apply puts objects and waits until NGINX serves them.
func (g *Instance) Apply(manifests string) {
	g.t.Helper()
	g.Put(manifests)
	g.WaitSynced()
}

// ApplyObjects is Apply for objects that hold what no manifest can say, such as
// text that is not UTF-8. They must not be changed any more.
func (g *Instance) ApplyObjects(objects ...metav1.Object) {
	g.t.Helper()
	g.send(changesOf(objects, false))
	g.WaitSynced()
}

// Put puts objects without waiting.
func (g *Instance) Put(manifests string) {
	g.t.Helper()
	g.send(changesOf(Decode(g.t, manifests), false))
}

// PutObjects does the same with objects, which must not be changed any more.
func (g *Instance) PutObjects(objects ...metav1.Object) {
	g.t.Helper()
	g.send(changesOf(objects, false))
}

// Delete deletes objects, of which kind, namespace and name suffice, and waits
// until NGINX no longer serves them.
func (g *Instance) Delete(manifests string) {
	g.t.Helper()
	g.Remove(manifests)
	g.WaitSynced()
}

// Remove deletes objects without waiting.
func (g *Instance) Remove(manifests string) {
	g.t.Helper()
	g.send(changesOf(Decode(g.t, manifests), true))
}

func (g *Instance) send(changes []source.Change) {
	g.t.Helper()
	d := delivery{changes, make(chan struct{})}
	select {
	case g.deliveries <- d:
		<-d.done
	case <-time.After(Timeout):
		g.t.Fatal("the controller takes no changes")
	}
}
