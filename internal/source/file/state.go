package file

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file/manifest"
)

// A hash stands for the content of a file; the zero hash is that of no file.
type hash [sha256.Size]byte

// A fileState is the known content of a file.
type fileState struct {
	hash    hash
	objects map[manifest.Key]manifest.Object
	// flaws may hide objects of the file, duplicates do not.
	flaws, duplicates []manifest.Flaw
	// kept: objects stay that can't be found in the file now.
	kept bool
}

// A state knows which file defines which objects. If several files define the
// same object, that of the first path is used.
type state struct {
	// mu guards holders. All other fields are used by one goroutine.
	mu sync.RWMutex

	files map[string]*fileState
	// holders has the paths of the files that define an object, in order.
	holders map[manifest.Key][]string
	// before has the objects that the current batch touches, before the batch.
	before map[manifest.Key]metav1.Object
	// reported has the files whose problems may have changed in this batch.
	reported map[string]bool
	// endpoints converts Endpoints.
	endpoints *endpointsConverter
}

func newState() *state {
	return &state{
		files:    make(map[string]*fileState),
		holders:  make(map[manifest.Key][]string),
		before:   make(map[manifest.Key]metav1.Object),
		reported: make(map[string]bool),

		endpoints: newEndpointsConverter(),
	}
}

// under lists the files in a folder, at any depth.
func (s *state) under(folder string) []string {
	var paths []string
	for path := range s.files {
		if inside(folder, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// hash is the hash of the last content of a file.
func (s *state) hash(path string) hash {
	if m := s.files[path]; m != nil {
		return m.hash
	}
	return hash{}
}

// holds reports whether a file defines objects.
func (s *state) holds(path string) bool {
	m := s.files[path]
	return m != nil && len(m.objects) > 0
}

// put replaces the content of a file. While the file has flaws, objects that are
// missing now stay.
func (s *state) put(path string, h hash, c manifest.Content) {
	m := s.files[path]
	if m == nil {
		m = &fileState{objects: make(map[manifest.Key]manifest.Object, len(c.Objects))}
		s.files[path] = m
	}
	m.hash, m.flaws, m.duplicates, m.kept = h, c.Flaws, c.Duplicates, false
	s.reported[path] = true
	now := make(map[manifest.Key]manifest.Object, len(c.Objects))
	for _, o := range c.Objects {
		now[o.Key] = o
	}
	for k, o := range m.objects {
		if _, ok := now[k]; ok {
			continue
		}
		if len(c.Flaws) > 0 {
			now[k], m.kept = o, true
			continue
		}
		s.touch(k)
		s.release(k, path)
	}
	for k := range now {
		s.touch(k)
		if _, ok := m.objects[k]; !ok {
			s.hold(k, path)
		}
	}
	m.objects = now
}

// remove removes a file.
func (s *state) remove(path string) {
	m := s.files[path]
	if m == nil {
		return
	}
	for k := range m.objects {
		s.touch(k)
		s.release(k, path)
	}
	delete(s.files, path)
	s.reported[path] = true
}

// winner is the object that is used, nil if there is none.
func (s *state) winner(k manifest.Key) metav1.Object {
	paths := s.holders[k]
	if len(paths) == 0 {
		return nil
	}
	return s.files[paths[0]].objects[k].Object
}

// touch remembers the object before this batch.
func (s *state) touch(k manifest.Key) {
	if _, ok := s.before[k]; !ok {
		s.before[k] = s.winner(k)
	}
}

func (s *state) hold(k manifest.Key, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.holders[k]
	at, _ := slices.BinarySearch(paths, path)
	s.holders[k] = slices.Insert(paths, at, path)
}

func (s *state) release(k manifest.Key, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.holders[k]
	if at, ok := slices.BinarySearch(paths, path); ok {
		paths = slices.Delete(paths, at, at+1)
	}
	if len(paths) == 0 {
		delete(s.holders, k)
		return
	}
	s.holders[k] = paths
}

// flush ends a batch: it returns the objects that have changed, sorted, and the
// problems of each file that was touched.
func (s *state) flush() ([]source.Change, map[string][]Problem) {
	keys := make([]manifest.Key, 0, len(s.before))
	for k := range s.before {
		keys = append(keys, k)
		for _, path := range s.holders[k] {
			s.reported[path] = true
		}
	}
	slices.SortFunc(keys, func(a, b manifest.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var changes []source.Change
	for _, k := range keys {
		was, is := s.before[k], s.winner(k)
		s.endpoints.update(k, was, is)
		switch {
		case k.Kind == "Endpoints":
		case is == nil && was != nil:
			changes = append(changes, source.Change{Object: was, Deleted: true})
		case is != nil && (was == nil || !equality.Semantic.DeepEqual(was, is)):
			changes = append(changes, source.Change{Object: is})
		}
	}
	changes = append(changes, s.endpoints.flush(s.winner)...)
	problems := make(map[string][]Problem, len(s.reported))
	for path := range s.reported {
		problems[path] = s.problems(path)
	}
	clear(s.before)
	clear(s.reported)
	return changes, problems
}

// problems are the current ones of a file. That of an object is one if the
// object is used.
func (s *state) problems(path string) []Problem {
	m := s.files[path]
	if m == nil {
		return nil
	}
	var ps []Problem
	effect := unread
	if m.kept {
		effect = stays
	}
	for _, f := range m.flaws {
		ps = append(ps, f.Problem(effect))
	}
	for _, f := range m.duplicates {
		ps = append(ps, f.Problem(vain))
	}
	for k, o := range m.objects {
		if first := s.holders[k][0]; first != path {
			place := first + ":" + strconv.Itoa(s.files[first].objects[k].Line)
			ps = append(ps, manifest.Flaw{Line: o.Line, Reason: k.AlreadyDefined(place)}.Problem(vain))
		} else if o.Problem != nil {
			ps = append(ps, *o.Problem)
		}
	}
	return ps
}

// inside reports whether path is in folder, at any depth.
func inside(folder, path string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && strings.HasPrefix(rest, "/")
}
