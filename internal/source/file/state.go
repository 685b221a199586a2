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
)

// A hash stands for the content of a file; the zero hash is that of no file.
type hash [sha256.Size]byte

// content is what was read from a file.
type content struct {
	hash    hash
	objects []object
	flaws   []flaw
	// vain has the objects that stand in the file once more.
	vain []flaw
}

// A manifest is what is known of a file.
type manifest struct {
	hash    hash
	objects map[key]object
	// flaws have a part in what the file holds, vain does not.
	flaws, vain []flaw
	// kept: objects stay that can't be found in the file now.
	kept bool
	// lost has the objects that stand in an earlier file too, with the place.
	lost map[key]string
}

// A state knows which file holds which objects. Where several files hold the
// same object, that of the first path counts.
type state struct {
	// mu guards holders against who asks while they change. All else is used by
	// one goroutine.
	mu sync.RWMutex

	files map[string]*manifest
	// holders has the paths of the files that hold an object, in order.
	holders map[key][]string
	// before has the objects that the current batch touches, as they were
	// before it.
	before map[key]metav1.Object
	// judged has the files whose problems may have changed in this batch.
	judged map[string]bool
	// endpoints has what is delivered for Endpoints.
	endpoints *substitute
}

func newState() *state {
	return &state{
		files:   make(map[string]*manifest),
		holders: make(map[key][]string),
		before:  make(map[key]metav1.Object),
		judged:  make(map[string]bool),

		endpoints: newSubstitute(),
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

// hash is the hash of what was last read from a file.
func (s *state) hash(path string) hash {
	if m := s.files[path]; m != nil {
		return m.hash
	}
	return hash{}
}

// holds says whether objects come from a file.
func (s *state) holds(path string) bool {
	m := s.files[path]
	return m != nil && len(m.objects) > 0
}

// put takes what was read from a file. While the file has flaws, what it held
// before and holds no more stays.
func (s *state) put(path string, c content) {
	m := s.files[path]
	if m == nil {
		m = &manifest{objects: make(map[key]object, len(c.objects)), lost: make(map[key]string)}
		s.files[path] = m
	}
	m.hash, m.flaws, m.vain, m.kept = c.hash, c.flaws, c.vain, false
	s.judged[path] = true
	now := make(map[key]object, len(c.objects))
	for _, o := range c.objects {
		now[o.key] = o
	}
	for k, o := range m.objects {
		if _, ok := now[k]; ok {
			continue
		}
		if len(c.flaws) > 0 {
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

// remove takes a file away.
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
	s.judged[path] = true
}

// winner is the object that counts, nil if there is none.
func (s *state) winner(k key) metav1.Object {
	paths := s.holders[k]
	if len(paths) == 0 {
		return nil
	}
	return s.files[paths[0]].objects[k].object
}

// touch remembers how an object was before this batch.
func (s *state) touch(k key) {
	if _, ok := s.before[k]; !ok {
		s.before[k] = s.winner(k)
	}
}

func (s *state) hold(k key, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.holders[k]
	at, _ := slices.BinarySearch(paths, path)
	s.holders[k] = slices.Insert(paths, at, path)
}

func (s *state) release(k key, path string) {
	delete(s.files[path].lost, k)
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

// flush ends a batch: it gives the objects that differ from what they were
// before it, sorted, and the problems of each file that was touched.
func (s *state) flush() ([]source.Change, map[string][]Problem) {
	keys := make([]key, 0, len(s.before))
	for k := range s.before {
		keys = append(keys, k)
		s.judge(k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	var changes []source.Change
	for _, k := range keys {
		was, is := s.before[k], s.winner(k)
		s.endpoints.see(k, was, is)
		switch {
		case k.kind == "Endpoints":
		case is == nil && was != nil:
			changes = append(changes, source.Change{Object: was, Deleted: true})
		case is != nil && (was == nil || !equality.Semantic.DeepEqual(was, is)):
			changes = append(changes, source.Change{Object: is})
		}
	}
	changes = append(changes, s.endpoints.flush(s.winner)...)
	problems := make(map[string][]Problem, len(s.judged))
	for path := range s.judged {
		problems[path] = s.problems(path)
	}
	clear(s.before)
	clear(s.judged)
	return changes, problems
}

// judge finds out in which files an object stands in vain.
func (s *state) judge(k key) {
	for i, path := range s.holders[k] {
		m := s.files[path]
		place, lost := m.lost[k]
		first := s.holders[k][0] + ":" + strconv.Itoa(s.files[s.holders[k][0]].objects[k].line)
		switch {
		case i == 0 && lost:
			delete(m.lost, k)
			s.judged[path] = true
		case i > 0 && place != first:
			m.lost[k] = first
			s.judged[path] = true
		}
	}
}

// problems are those of a file now. An object of an old version is one if it
// counts.
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
		ps = append(ps, f.problem(effect))
	}
	for _, f := range m.vain {
		ps = append(ps, f.problem(vain))
	}
	for k, place := range m.lost {
		ps = append(ps, flaw{m.objects[k].line, inVain(k, place)}.problem(vain))
	}
	for k, o := range m.objects {
		if _, lost := m.lost[k]; o.old != nil && !lost {
			old := *o.old
			old.Line = o.line
			ps = append(ps, old)
		}
	}
	return ps
}

// inside says whether path lies in folder, at any depth.
func inside(folder, path string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && strings.HasPrefix(rest, "/")
}
