// Package publish keeps the newest version of every resource, and gives each reader what
// differs from what it has.
//
// A reader gets cuts: all that has changed since the last one, as it was at one time. So what a
// resource refers to is there before it, and a slow reader gets the newest version of each
// resource and never a queue of old ones. What a reader has, it knows itself: here it takes the
// same memory however much that is.
package publish

import (
	"slices"
	"sync"
	"weak"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A Change is a unit that was built: what package wire made of it, nil if there is no such unit
// any more, and the namespace that it belongs to, empty for none.
type Change struct {
	unit.Key
	Namespace string
	Resources []wire.Resource
}

// A Store keeps resources. Its methods may be called by several goroutines.
type Store struct {
	mu      sync.Mutex
	entries map[unit.Key]*entry
	// first and last are the ends of the list of all entries, those that changed last at the end.
	first, last *entry
	at          uint64
	gone        int
	readers     map[*Reader]struct{}
	// needed are how many units of each namespace need a unit of another one.
	needed map[unit.Key]map[string]int
	// changed is closed at the next change.
	changed chan struct{}
	// free are numbers that no entry has, of those below the number of all.
	free []int
	// all is what readers get that have nothing, for as long as one of them sends it.
	all weak.Pointer[Whole]
}

// A Whole is all resources at one time, in their order. Readers that begin meanwhile have the same one.
type Whole struct {
	at        uint64
	resources []wire.Resource
	once      sync.Once
	made      any
}

// Made is what was made of the resources by the first call. What it makes must be the same for all readers.
func (w *Whole) Made(make func([]wire.Resource) any) any {
	w.once.Do(func() { w.made = make(w.resources) })
	return w.made
}

// An entry is a resource, or what is left of one.
type entry struct {
	wire.Resource
	gone bool
	// changed is when it last did.
	changed uint64
	// users are how many units of each namespace refer to it. A unit refers to itself. ever are the namespaces
	// of which some did, while it is known.
	users            map[string]int
	ever             []string
	previous, behind *entry
	// namespace is that of a unit.
	namespace string
	// number is one that no other entry has.
	number int
}

// New is an empty Store.
func New() *Store {
	return &Store{entries: map[unit.Key]*entry{}, needed: map[unit.Key]map[string]int{}, readers: map[*Reader]struct{}{}, changed: make(chan struct{})}
}

// Put publishes changes. Readers see all of them together. It returns the version of the Store with
// them.
func (s *Store) Put(changes ...Change) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.at
	s.at++
	for _, c := range changes {
		s.put(c)
	}
	if s.last == nil || s.last.changed <= before {
		s.at = before
		return before
	}
	s.forget()
	s.wake()
	return s.at
}

func (s *Store) put(c Change) {
	var before, needed []unit.Key
	var beforeIn string
	if e := s.entries[c.Key]; e != nil && !e.gone {
		before, needed, beforeIn = append([]unit.Key{c.Key}, e.Refers...), e.Needs, e.namespace
	}
	for _, r := range c.Resources {
		s.set(r)
		s.use(r.Key, c.Namespace, 1)
	}
	if len(c.Resources) > 0 {
		e := s.entries[c.Key]
		e.namespace = c.Namespace
		for _, key := range e.Needs {
			s.need(key, c.Namespace, 1)
		}
	}
	for _, key := range before {
		s.use(key, beforeIn, -1)
	}
	for _, key := range needed {
		s.need(key, beforeIn, -1)
	}
}

// need counts the units of a namespace that need a unit of another one, which may not be there.
func (s *Store) need(key unit.Key, namespace string, more int) {
	users := s.needed[key]
	if users == nil {
		users = map[string]int{}
		s.needed[key] = users
	}
	was := users[namespace]
	if users[namespace] += more; users[namespace] == 0 {
		delete(users, namespace)
	}
	if len(users) == 0 {
		delete(s.needed, key)
	}
	if e := s.entries[key]; e != nil && (was > 0) != (was+more > 0) {
		e.noteReaders(namespace)
		s.touch(e)
	}
}

// noteReaders notes that it is, or was, for readers of a namespace.
func (e *entry) noteReaders(namespace string) {
	if !slices.Contains(e.ever, namespace) {
		e.ever = append(e.ever, namespace)
	}
}

// set sets what a resource is.
func (s *Store) set(r wire.Resource) {
	e := s.entries[r.Key]
	if e == nil {
		e = &entry{users: map[string]int{}, number: s.number()}
		s.entries[r.Key] = e
		for namespace := range s.needed[r.Key] {
			e.ever = append(e.ever, namespace)
		}
	}
	if e.gone {
		e.gone = false
		s.gone--
	}
	if e.Version != r.Version || e.changed == 0 {
		e.Resource = r
		s.touch(e)
		return
	}
	// Bytes that are equal are kept once.
	e.Refers, e.Needs = r.Refers, r.Needs
}

// number is one for another entry.
func (s *Store) number() int {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		return n
	}
	return len(s.entries)
}

// use counts the units of a namespace that refer to a resource. One that nothing refers to is gone.
func (s *Store) use(key unit.Key, namespace string, more int) {
	e := s.entries[key]
	was := e.users[namespace]
	now := was + more
	if now > 0 {
		e.users[namespace] = now
		e.noteReaders(namespace)
	} else {
		delete(e.users, namespace)
	}
	if (was > 0) != (now > 0) {
		// It may be for other readers than before.
		s.touch(e)
	}
	if len(e.users) == 0 && !e.gone {
		e.Resource, e.gone = wire.Resource{Key: key}, true
		s.gone++
	}
}

// touch puts an entry at the end of the list.
func (s *Store) touch(e *entry) {
	if e.changed > 0 {
		s.unlink(e)
	}
	e.changed = s.at
	e.previous, e.behind = s.last, nil
	if s.last != nil {
		s.last.behind = e
	} else {
		s.first = e
	}
	s.last = e
}

func (s *Store) unlink(e *entry) {
	if e.previous != nil {
		e.previous.behind = e.behind
	} else {
		s.first = e.behind
	}
	if e.behind != nil {
		e.behind.previous = e.previous
	} else {
		s.last = e.previous
	}
}

// fewGone may be left: looking at all entries takes a while.
const fewGone = 1000

// forget drops what is gone for all readers. The slowest one would keep all of it, for as long as
// it does not read, and has to begin again if that is much.
func (s *Store) forget() {
	if s.gone <= max(fewGone, len(s.entries)/4) {
		return
	}
	slowest := s.slowest()
	s.forgetUntil(slowest)
	if s.gone <= max(fewGone, len(s.entries)/2) {
		return
	}
	for r := range s.readers {
		if r.at == slowest {
			r.late = true
			delete(s.readers, r)
		}
	}
	s.forgetUntil(s.slowest())
}

// slowest is up to when all readers have all changes.
func (s *Store) slowest() uint64 {
	at := s.at
	for r := range s.readers {
		at = min(at, r.at)
	}
	return at
}

func (s *Store) forgetUntil(at uint64) {
	for e := s.first; e != nil && e.changed <= at; e = e.behind {
		if e.gone {
			s.unlink(e)
			delete(s.entries, e.Key)
			s.free = append(s.free, e.number)
			s.gone--
		}
	}
}

// wake has readers look again.
func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Regroup has readers that do not get everything begin again: what they get has changed.
func (s *Store) Regroup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		if r.takes != nil {
			r.late = true
			delete(s.readers, r)
		}
	}
	s.wake()
}

// Appeared has what is of a namespace sent to readers that get it only now, since it was in no group before.
func (s *Store) Appeared(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*entry
	for key, e := range s.entries {
		if e.users[namespace] > 0 || s.needed[key][namespace] > 0 {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return
	}
	s.at++
	for _, e := range list {
		s.touch(e)
	}
	s.wake()
}

// Sees reports whether readers of such namespaces get a unit.
func (s *Store) Sees(key unit.Key, takes func(namespace string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	return e != nil && (&Reader{store: s, takes: takes}).gets(e)
}

// At is the version of the Store: it grows with each change.
func (s *Store) At() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// A Size is what a Store has.
type Size struct {
	Resources int
	Bytes     int64
	Readers   int
}

// Size adds up what it has.
func (s *Store) Size() Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := Size{Readers: len(s.readers)}
	for e := s.first; e != nil; e = e.behind {
		if !e.gone {
			size.Resources++
			size.Bytes += int64(len(e.Bytes))
		}
	}
	return size
}
