package publish

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"weak"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A Reader follows a Store. It is used by one goroutine.
type Reader struct {
	store *Store
	takes func(namespace string) bool
	// at is up to when it has all changes, and up to the first cut when it began.
	at uint64
	// began is false up to the first cut. Until then, same are the numbers of entries whose versions it had already
	// at that time, and others what it has besides: hundreds of readers may begin at the same moment.
	began  bool
	same   numbers
	others []unit.Key
	// othersBytes is the memory that these take.
	othersBytes int
	late        bool
}

// maxOthers is how much memory names may take of what a reader has in another version than the Store, in bytes. A reader
// is not trusted: it may name anything. This is enough for 100,000 hosts with all that they refer to.
const maxOthers = 64 << 20

// otherBytes is what such a name takes besides its text.
const otherBytes = 48

var errTooMuch = fmt.Errorf("more is held than can be: what is not as it is here takes more than %d MiB", maxOthers>>20)

// Reader returns a Reader for one who has nothing. takes says of which namespaces it gets units, and what these
// refer to; what belongs to none, it gets always.
func (s *Store) Reader(takes func(namespace string) bool) *Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Reader{store: s, takes: takes, at: s.at}
	s.readers[r] = struct{}{}
	return r
}

// holdAtOnce is how many versions are noted while all others wait for the Store.
const holdAtOnce = 10_000

// Hold notes which versions it has already. It must be called before Next, with each unit once. After an error the
// Reader is of no use.
func (r *Reader) Hold(versions iter.Seq2[unit.Key, string]) error {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	held := 0
	for key, version := range versions {
		if held++; held%holdAtOnce == 0 {
			s.mu.Unlock()
			s.mu.Lock()
		}
		// What changed since it began may have another version than at that time.
		if e := s.entries[key]; e != nil && !e.gone && e.Version == version && e.changed <= r.at {
			r.same.add(e.number)
			continue
		}
		if r.othersBytes += otherBytes + len(key.Name); r.othersBytes > maxOthers {
			return errTooMuch
		}
		r.others = append(r.others, key)
	}
	return nil
}

// numbers is a set of small numbers.
type numbers []uint64

func (n *numbers) add(i int) {
	for i/64 >= len(*n) {
		*n = append(*n, 0)
	}
	(*n)[i/64] |= 1 << (i % 64)
}

func (n numbers) has(i int) bool { return i/64 < len(n) && n[i/64]&(1<<(i%64)) != 0 }

// Close ends it.
func (r *Reader) Close() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	delete(r.store.readers, r)
}

// A Cut is what a reader lacks: resources with all that they refer to before them, and then what
// is gone, in the opposite order.
type Cut struct {
	// At is the version of the Store that the reader has with it.
	At uint64
	// Resources must not be changed: other readers have them too.
	Resources []wire.Resource
	// Whole has the same Resources, if these are all that there are; otherwise it is nil.
	Whole *Whole
	Gone  []unit.Key
}

// ErrLate means that a reader must begin again: it was away for so long that it is not known any more
// what is gone meanwhile, or it gets other namespaces than before.
var ErrLate = errors.New("the reader must begin again")

// Next waits for changes. A Cut may be empty: then the reader has everything up to that version of the Store.
func (r *Reader) Next(ctx context.Context) (Cut, error) {
	for {
		cut, changed, err := r.cut()
		if err != nil || changed == nil {
			return cut, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Cut{}, fmt.Errorf("wait for changes: %w", ctx.Err())
		}
	}
}

// cut is the next Cut, or what to wait for.
func (r *Reader) cut() (cut Cut, changed <-chan struct{}, err error) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.late:
		return Cut{}, nil, ErrLate
	case !r.began:
		cut = r.first()
	case s.at > r.at:
		cut = r.since()
	default:
		return Cut{}, s.changed, nil
	}
	r.at, cut.At = s.at, s.at
	r.began, r.same, r.others = true, nil, nil
	slices.SortFunc(cut.Gone, unit.Key.CompareDeleted)
	return cut, nil, nil
}

func (r *Reader) first() (cut Cut) {
	if r.takes == nil && len(r.same) == 0 {
		cut.Whole = r.store.whole()
		cut.Resources = cut.Whole.resources
	} else {
		cut = r.differing()
	}
	for _, key := range r.others {
		if e := r.store.entries[key]; e == nil || !r.gets(e) {
			cut.Gone = append(cut.Gone, key)
		}
	}
	return cut
}

// differing is what a reader lacks that has some versions already.
func (r *Reader) differing() (cut Cut) {
	for e := r.store.first; e != nil; e = e.behind {
		has := r.same.has(e.number) && e.changed <= r.at
		switch gets := r.gets(e); {
		case gets && !has:
			cut.Resources = append(cut.Resources, e.Resource)
		case !gets && r.same.has(e.number):
			cut.Gone = append(cut.Gone, e.Key)
		}
	}
	sortResources(cut.Resources)
	return cut
}

// whole is made once for all readers that begin at the same time.
func (s *Store) whole() *Whole {
	if all := s.all.Value(); all != nil && all.at == s.at {
		return all
	}
	all := &Whole{at: s.at, resources: make([]wire.Resource, 0, len(s.entries)-s.gone)}
	for e := s.first; e != nil; e = e.behind {
		if !e.gone {
			all.resources = append(all.resources, e.Resource)
		}
	}
	sortResources(all.resources)
	s.all = weak.Make(all)
	return all
}

func sortResources(list []wire.Resource) {
	slices.SortFunc(list, func(a, b wire.Resource) int { return a.Key.Compare(b.Key) })
}

func (r *Reader) since() (cut Cut) {
	for e := r.store.last; e != nil && e.changed > r.at; e = e.previous {
		if r.gets(e) {
			cut.Resources = append(cut.Resources, e.Resource)
		} else if slices.ContainsFunc(e.ever, r.isFor) {
			cut.Gone = append(cut.Gone, e.Key)
		}
	}
	sortResources(cut.Resources)
	return cut
}

// gets reports whether a resource is for the reader.
func (r *Reader) gets(e *entry) bool {
	if e.gone || r.takes == nil {
		return !e.gone
	}
	for namespace := range e.users {
		if r.isFor(namespace) {
			return true
		}
	}
	for namespace := range r.store.needed[e.Key] {
		if r.isFor(namespace) {
			return true
		}
	}
	return false
}

func (r *Reader) isFor(namespace string) bool {
	return namespace == "" || r.takes == nil || r.takes(namespace)
}
