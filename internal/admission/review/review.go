// Package review decides which Ingresses the admission webhook lets in.
//
// It applies an Ingress to a store of its own, builds what that touches as the
// controller would, and takes the Ingress back. So it finds what the controller would
// find. It knows nothing of HTTP, and neither NGINX nor what the controller does.
package review

import (
	"context"
	"errors"
	"slices"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// Settings are those of the controller whose decisions are to be found.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix is the prefix of annotations, without the slash.
	AnnotationPrefix string
	// Lacking is what NGINX can't do.
	Lacking []feature.Capability
	// Tester has NGINX test directives, nil if there is none.
	Tester feature.Tester
	// Namespace is the only one that is served; empty means all.
	Namespace string
	// Measure has decisions say what was built for them.
	Measure bool
}

// A Reviewer has the objects that the controller has, and decides about Ingresses.
type Reviewer struct {
	settings Settings
	queue    *source.Queue
	turns    turns

	mu      sync.Mutex
	loaded  bool
	store   *store.Store
	builder *build.Builder
	rules   spec.RulesMemo
	trials  trials
}

// New makes a Reviewer without objects.
func New(s Settings) *Reviewer {
	builder := build.New(s.Features, s.AnnotationPrefix, s.Lacking...)
	r := &Reviewer{
		settings: s, queue: source.NewQueue(), turns: turns{of: map[string]*turn{}},
		store: store.New(s.Store, builder.Refer), builder: builder,
		trials: trials{tester: s.Tester, place: make(chan struct{}, 1)},
	}
	if s.Tester != nil {
		builder.Try(r.trials.ask)
	}
	return r
}

// Put adds changes. It does not wait: Run applies them. The first ones must be all
// objects that there are.
func (r *Reviewer) Put(changes ...source.Change) { r.queue.Put(changes...) }

// Run applies changes until ctx ends.
func (r *Reviewer) Run(ctx context.Context) {
	select {
	case <-r.queue.Filled():
	case <-ctx.Done():
		return
	}
	r.queue.Run(ctx, func(_ context.Context, changes []source.Change) { r.apply(changes) }, true)
}

// apply lets reviews in between two changes, once there is something to review them by.
func (r *Reviewer) apply(changes []source.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, change := range changes {
		r.store.Apply(change.Object, change.Deleted)
		if r.loaded {
			r.mu.Unlock()
			r.mu.Lock()
		}
	}
	r.loaded = true
	r.drain()
}

// drain drops what the store keeps for a controller.
func (r *Reviewer) drain() {
	r.store.DrainIngresses()
	r.store.DrainSecrets()
	r.store.DrainConfigMaps()
	r.store.DrainNames()
	r.store.DrainIssuers()
}

// ErrNotLoaded is the error until there are objects to review an Ingress by.
var ErrNotLoaded = errors.New("the objects of the cluster are not loaded yet")

// maxUnits is how many units are built for a review. An Ingress with more hosts than that
// is reviewed in part.
const maxUnits = 2000

// Review decides about a new Ingress, or a new version of one. It waits for reviews of
// other Ingresses of the same namespace, also while NGINX tests directives: other namespaces
// don't wait for that.
func (r *Reviewer) Review(ctx context.Context, ing *networkingv1.Ingress) (Decision, error) {
	if ing.DeletionTimestamp != nil || r.settings.Namespace != "" && ing.Namespace != r.settings.Namespace {
		return Decision{}, nil
	}
	leave, err := r.turns.take(ctx, ing.Namespace)
	if err != nil {
		return Decision{}, err
	}
	defer leave()
	for known := 0; ; {
		d, untried, err := r.reviewOnce(ing)
		if err != nil || len(untried) == 0 || known >= maxTrials {
			return d, err
		}
		more := r.trials.run(ctx, untried, maxTrials-known)
		if known += more; more == 0 {
			// What can't be tested now is a warning.
			return d, nil
		}
	}
}

// reviewOnce also returns what NGINX is to test before the decision holds.
func (r *Reviewer) reviewOnce(ing *networkingv1.Ingress) (Decision, []feature.Trial, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.loaded {
		return Decision{}, nil, ErrNotLoaded
	}
	d := r.review(ing)
	return d, r.trials.take(), nil
}

func (r *Reviewer) review(ing *networkingv1.Ingress) Decision {
	name := types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
	was := r.store.Ingress(name)
	touched := r.store.Apply(ing, false)
	undo := sync.OnceFunc(func() {
		if was != nil {
			r.store.Apply(was, false)
		} else {
			r.store.Apply(ing, true)
		}
		r.drain()
	})
	defer undo()
	refused := r.store.Refused(name) != nil
	if len(touched) == 0 || !refused && !r.store.Serves(name) {
		// Nothing that is read changes, or it is not for this controller.
		return Decision{}
	}
	d := Decision{object: spec.ObjectName(ing)}
	r.checkAlone(ing, &d)
	if !refused {
		r.checkPaths(ing, &d)
	}
	found := r.find(ing, touched)
	d.Measured = found.measured
	for _, f := range found.own {
		v := verdictOf(f, r.settings.AnnotationPrefix)
		if f.Code == finding.HostOwned && !found.stranger {
			// Another Ingress asks for a name of this one.
			v = Warn
		}
		d.add(f, v)
	}
	for _, f := range found.services {
		d.add(f, Warn)
	}
	if len(found.others) > 0 {
		undo()
		for _, f := range r.caused(found) {
			d.add(f, Refuse)
		}
	}
	return d.finish()
}

// findings are those of the units that an Ingress touches.
type findings struct {
	// own are about the Ingress, services about Services that it names, and others about
	// other Ingresses that have less because of it. otherUnits have the latter.
	own, services, others []finding.Finding
	otherUnits            []unit.Key
	// stranger is set if the Ingress asks for a name of another namespace.
	stranger bool
	measured Measured
}

// find builds the units, and the backends of the Ingress: those that others use too are not
// touched.
func (r *Reviewer) find(ing *networkingv1.Ingress, touched []unit.Key) (found findings) {
	object, references := spec.ObjectName(ing), r.store.References(ing)
	keys, services := touched, map[string]bool{}
	for _, ref := range references.Backends {
		keys = append(keys, unit.Backend.Key(ref.Key))
		services["service/"+ref.Service.String()] = true
	}
	slices.SortFunc(keys, unit.Key.Compare)
	keys = slices.Compact(keys)
	missing := r.missing(ing)
	found.stranger = r.isStranger(ing, references)
	m := r.measure(ing)
	defer func() { found.measured = m.end() }()
	for _, key := range keys[:min(len(keys), maxUnits)] {
		built, fs := r.builder.Unit(key, r.store)
		m.add(built)
		for _, f := range fs {
			switch {
			case f.Object == object:
				if !missing.explain(f) {
					found.own = append(found.own, f)
				}
			case services[f.Object]:
				found.services = append(found.services, f)
			case takes(f):
				found.others = append(found.others, f)
				found.otherUnits = append(found.otherUnits, key)
			}
		}
	}
	return found
}

// isStranger reports whether the Ingress asks for a name of another namespace.
func (r *Reviewer) isStranger(ing *networkingv1.Ingress, references spec.References) bool {
	return slices.ContainsFunc(slices.Concat(references.Hosts, references.Aliases, references.RedirectAliases), func(name string) bool {
		return slices.ContainsFunc(r.store.Strangers(name), func(s spec.Stranger) bool { return s.Ingress == ing })
	})
}

// caused are the findings about others that are not there without the Ingress.
func (r *Reviewer) caused(found findings) []finding.Finding {
	before := map[finding.Finding]bool{}
	for _, key := range slices.Compact(found.otherUnits) {
		_, fs := r.builder.Unit(key, r.store)
		for _, f := range fs {
			before[f] = true
		}
	}
	return slices.DeleteFunc(found.others, func(f finding.Finding) bool { return before[f] })
}
