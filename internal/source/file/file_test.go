package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/source"
)

// A fixture is a folder of manifests with a source that runs on it.
type fixture struct {
	t        *testing.T
	folder   string
	changes  chan []source.Change
	problems chan string
	// dropped is set where changes and problems that come no longer count.
	dropped bool
}

// start writes files, name and text in turns, and runs a source on them.
func start(t *testing.T, files ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, folder: filepath.Join(t.TempDir(), "manifests"), changes: make(chan []source.Change, 100), problems: make(chan string, 100)}
	f.mkdir("")
	for i := 0; i < len(files); i += 2 {
		f.write(files[i], files[i+1])
	}
	s, err := New(f.folder, f.report())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func(_ context.Context, c []source.Change) { f.changes <- c }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// All other changes and problems are unexpected.
		close(f.changes)
		close(f.problems)
		if f.dropped {
			return
		}
		for c := range f.changes {
			t.Errorf("unexpected changes: %v", describeChanges(c))
		}
		for p := range f.problems {
			t.Errorf("unexpected problem: %s", p)
		}
	})
	return f
}

// report passes on what is new among the problems of a path, and that none
// are left. The line of an object of an old version does not matter.
func (f *fixture) report() func(map[string][]Problem) {
	before := map[string]map[Problem]bool{}
	return func(all map[string][]Problem) {
		for _, path := range slices.Sorted(maps.Keys(all)) {
			is := map[Problem]bool{}
			for _, p := range all[path] {
				text := describeProblem(strings.TrimPrefix(path, f.folder+"/"), p)
				if p.Object != "" {
					p.Line = 0
				}
				if is[p] = true; !before[path][p] {
					f.problems <- text
				}
			}
			if len(is) == 0 {
				f.problems <- strings.TrimPrefix(path, f.folder+"/") + " is fine again"
			}
			before[path] = is
		}
	}
}

// describeProblem is "file:line: reason; effect", with what it is about.
func describeProblem(path string, p Problem) string {
	text := path + ": "
	if p.Line > 0 {
		text = fmt.Sprintf("%s:%d: ", path, p.Line)
	}
	if p.Object != "" {
		text += p.Object + ": "
	}
	return text + p.Reason + "; " + p.Effect
}

func (f *fixture) path(name string) string { return filepath.Join(f.folder, name) }

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) mkdir(name string) { f.t.Helper(); f.must(os.MkdirAll(f.path(name), 0o700)) }

// write writes in place.
func (f *fixture) write(name, text string) {
	f.t.Helper()
	f.must(os.WriteFile(f.path(name), []byte(text), 0o600))
}

// put renames a file into its place.
func (f *fixture) put(name, text string) {
	f.t.Helper()
	f.write(".temporary", text)
	f.rename(".temporary", name)
}

func (f *fixture) rename(from, to string) { f.t.Helper(); f.must(os.Rename(f.path(from), f.path(to))) }

func (f *fixture) remove(name string) { f.t.Helper(); f.must(os.RemoveAll(f.path(name))) }

func (f *fixture) link(target, name string) { f.t.Helper(); f.must(os.Symlink(target, f.path(name))) }

// want waits for the next batch, as "name=value" or "-name"; only ConfigMaps
// have values.
func (f *fixture) want(changes ...string) {
	f.t.Helper()
	select {
	case c := <-f.changes:
		if got := describeChanges(c); !slices.Equal(got, changes) {
			f.t.Fatalf("changes %q, want %q", got, changes)
		}
	case <-time.After(10 * time.Second):
		f.t.Fatalf("no changes, want %q", changes)
	}
}

// wantProblem waits for the next problem, of which text is a part.
func (f *fixture) wantProblem(text string) {
	f.t.Helper()
	select {
	case p := <-f.problems:
		if got := strings.ReplaceAll(p, f.folder+"/", ""); !strings.Contains(got, text) {
			f.t.Fatalf("problem %q, want %q", got, text)
		}
	case <-time.After(10 * time.Second):
		f.t.Fatalf("no problem, want %q", text)
	}
}

func describeChanges(changes []source.Change) []string {
	texts := []string{}
	for _, c := range changes {
		text := "-" + c.Object.GetName()
		if !c.Deleted {
			text = c.Object.GetName() + "="
			if o, ok := c.Object.(*corev1.ConfigMap); ok {
				text += o.Data["v"]
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// config is a ConfigMap.
func config(name, value string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  v: %q\n", name, value)
}

const broken = "---\na: b: c\n"

func TestEmptyFolderIsDelivered(t *testing.T) {
	start(t, "notes.txt", "x", ".hidden.yaml", config("h", "1"), "a.yaml~", config("h", "1")).want()
}

func TestMissingFolder(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("no error")
	}
}

func TestAddChangeRenameDelete(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1")+config("b", "1"), "c.yml", config("c", "1"))
	f.want("a=1", "b=1", "c=1")
	f.put("d.yaml", config("d", "1"))
	f.want("d=1")
	began := time.Now()
	f.write("a.yaml", config("a", "1")+config("b", "2"))
	if time.Since(began) < emptyTimeout {
		f.want("b=2")
	} else {
		// This process had to wait while the file was empty: it may rightly have
		// been believed to be.
		for !slices.Contains(describeChanges(<-f.changes), "b=2") {
		}
	}
	f.put("a.yaml", config("a", "1"))
	f.want("-b")
	// A rename within the folder changes no object, nor do comments.
	f.rename("a.yaml", "z.yaml")
	f.put("c.yml", "# a comment\n"+config("c", "1"))
	f.remove("d.yaml")
	f.want("-d")
	f.put("z.yaml", config("a", "2"))
	f.want("a=2")
}

func TestBrokenDocumentKeepsItsObjects(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1")+config("b", "1"))
	f.want("a=1", "b=1")
	f.put("a.yaml", config("a", "2")+broken)
	f.want("a=2")
	f.wantProblem("a.yaml:9: mapping values are not allowed in this context; its last valid content is still used")
	// The same problem is reported once.
	f.put("a.yaml", config("a", "3")+broken)
	f.want("a=3")
	f.put("a.yaml", config("a", "3"))
	f.want("-b")
	f.wantProblem("a.yaml is fine again")
}

func TestTheFirstOfTwoFilesCounts(t *testing.T) {
	f := start(t, "b.yaml", config("x", "b"))
	f.want("x=b")
	f.put("c.yaml", config("x", "c"))
	f.wantProblem("c.yaml:2: ConfigMap default/x is already defined in b.yaml:2; this definition is not used")
	f.put("a.yaml", config("x", "a"))
	f.want("x=a")
	f.wantProblem("b.yaml:2: ConfigMap default/x is already defined in a.yaml:2; this definition is not used")
	f.wantProblem("c.yaml:2: ConfigMap default/x is already defined in a.yaml:2; this definition is not used")
	f.remove("a.yaml")
	f.want("x=b")
	f.wantProblem("b.yaml is fine again")
	f.wantProblem("c.yaml:2: ConfigMap default/x is already defined in b.yaml:2; this definition is not used")
	f.remove("b.yaml")
	f.want("x=c")
	f.wantProblem("c.yaml is fine again")
	f.remove("c.yaml")
	f.want("-x")
}

func TestMountedConfigMap(t *testing.T) {
	f := start(t)
	f.want()
	version := func(n int, value string) {
		f.mkdir(fmt.Sprintf("..%d/sub", n))
		f.write(fmt.Sprintf("..%d/a.yaml", n), config("a", value))
		f.write(fmt.Sprintf("..%d/sub/b.yaml", n), config("b", value))
		f.link(fmt.Sprintf("..%d", n), "..data_tmp")
		f.rename("..data_tmp", "..data")
	}
	version(1, "1")
	f.link("..data/a.yaml", "a.yaml")
	f.want("a=1")
	f.link("..data/sub", "sub")
	f.want("b=1")
	for n := 2; n < 5; n++ {
		version(n, fmt.Sprint(n))
		f.want(fmt.Sprintf("a=%d", n), fmt.Sprintf("b=%d", n))
		f.remove(fmt.Sprintf("..%d", n-1))
	}
	f.remove("a.yaml")
	f.want("-a")
}

func TestFolders(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1"))
	f.want("a=1")
	f.must(os.MkdirAll(filepath.Join(f.folder, "../outside/deep"), 0o700))
	f.write("../outside/deep/b.yaml", config("b", "1"))
	f.rename("../outside", "sub")
	f.want("b=1")
	f.put("sub/deep/c.yaml", config("c", "1"))
	f.want("c=1")
	f.rename("sub", "other")
	f.put("other/deep/c.yaml", config("c", "2"))
	f.want("c=2")
	f.rename("other", "../outside")
	f.want("-b", "-c")
	f.mkdir("loop")
	f.link("..", "loop/again")
	f.wantProblem("loop/again: the folder contains itself by a link, or is nested too deeply")
	f.put("loop/d.yaml", config("d", "1"))
	f.want("d=1")
	f.remove("loop/again")
	f.wantProblem("loop/again is fine again")
	f.link("..", "loop/again")
	f.wantProblem("loop/again: the folder contains itself by a link, or is nested too deeply")
	f.remove("loop")
	f.want("-d")
	f.wantProblem("loop/again is fine again")
}

func TestFolderGoesAndComes(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1"), "b.yaml", config("b", "1"))
	f.want("a=1", "b=1")
	f.rename("", "../away")
	f.wantProblem("its last state is served")
	f.rename("../away", "../manifests")
	f.wantProblem("fine again")
	f.put("a.yaml", config("a", "2"))
	f.want("a=2")
	f.rename("", "../away")
	f.wantProblem("its last state is served")
	f.must(os.MkdirAll(filepath.Join(f.folder, "../new"), 0o700))
	f.write("../new/b.yaml", config("b", "2"))
	f.rename("../new", "../manifests")
	f.want("-a", "b=2")
	f.wantProblem("fine again")
}

func TestAnEmptiedFileIsReadAgain(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1"))
	f.want("a=1")
	began := time.Now()
	f.write("a.yaml", "")
	f.want("-a")
	if took := time.Since(began); took < emptyTimeout {
		t.Errorf("believed after %v", took)
	}
}

// A file that is written in place, in pieces, is not read before it is complete:
// without its second half, a path may be open.
func TestHalfWrittenFilesAreNotRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		open  bool
		pause time.Duration
	}{
		{"closed in between", false, 50 * time.Millisecond},
		{"open all the time", true, 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			const attempts = 50
			for attempt := 1; writeInHalves(t, c.open, c.pause); attempt++ {
				if attempt == attempts {
					t.Fatalf("the machine stalled in %d attempts", attempts)
				}
			}
		})
	}
}

// writeInHalves writes files with a pause in their middle, and reports whether the machine stalled then and the
// attempt says nothing. open says that the file is open in the pause.
func writeInHalves(t *testing.T, open bool, pause time.Duration) (stalled bool) {
	t.Helper()
	f := start(t, "a.yaml", config("a", "1")+config("guard", "1"))
	f.want("a=1", "guard=1")
	for _, name := range []string{"a.yaml", "b.yaml", "sub/c.yaml"} {
		f.mkdir(filepath.Dir(name))
		object := filepath.Base(name)
		file, err := os.Create(f.path(name))
		f.must(err)
		_, err = file.WriteString(config(object, "2"))
		f.must(err)
		if !open {
			f.must(file.Close())
		}
		began := time.Now()
		time.Sleep(pause) // A writer's pause: there is nothing to wait for.
		stalled := time.Since(began) > pause+quiet/4
		if !open {
			file, err = os.OpenFile(f.path(name), os.O_APPEND|os.O_WRONLY, 0)
			f.must(err)
		}
		_, err = file.WriteString(config("guard-"+object, "2"))
		f.must(errors.Join(err, file.Close()))
		if stalled {
			f.dropped = true
			return true
		}
		want := []string{object + "=2", "guard-" + object + "=2"}
		if name == "a.yaml" {
			want = []string{"-a", want[0], "-guard", want[1]}
		}
		f.want(want...)
	}
	return false
}

// A file that is copied before it is removed keeps its objects.
func TestCopiedFileKeepsItsObjects(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1"))
	f.want("a=1")
	f.write("b.yaml", config("a", "2"))
	f.remove("a.yaml")
	f.want("a=2")
}

func TestUnreadable(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1"))
	f.want("a=1")
	f.link("nowhere", ".link")
	f.rename(".link", "a.yaml")
	f.wantProblem("a.yaml: a link to a file that does not exist")
	f.put("a.yaml", config("a", "2"))
	f.want("a=2")
	f.wantProblem("a.yaml is fine again")
	f.must(os.Truncate(f.path("a.yaml"), maxSize+1))
	f.wantProblem("a.yaml: larger than 256 MiB")
	f.remove("a.yaml")
	f.want("-a")
	f.wantProblem("a.yaml is fine again")
}

func TestOverflow(t *testing.T) {
	folder := t.TempDir()
	changes := make(chan []source.Change, 10)
	w, err := New(folder, func(p map[string][]Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, folder: folder, changes: changes}
	f.write("a.yaml", config("a", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, func(_ context.Context, c []source.Change) { changes <- c }) }()
	f.want("a=1")
	// From here on no event comes.
	f.must(w.tree.watcher.Remove(folder))
	f.put("b.yaml", config("b", "1"))
	f.remove("a.yaml")
	w.tree.watcher.Errors <- fsnotify.ErrEventOverflow
	f.want("-a", "b=1")
	f.put("c.yaml", config("c", "1"))
	f.want("c=1")
	cancel()
	<-done
}

func TestBurst(t *testing.T) {
	const n = 2000
	f := start(t)
	f.want()
	for i := range n {
		f.put(fmt.Sprintf("%d.yaml", i), config(fmt.Sprintf("c%d", i), "1"))
	}
	for seen := 0; seen < n; {
		select {
		case c := <-f.changes:
			seen += len(c)
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d objects", seen, n)
		}
	}
}

// What becomes of a broken file depends on what was read there before.
func TestEffectOfABrokenFile(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1")+broken)
	f.want("a=1")
	f.wantProblem("a.yaml:9: mapping values are not allowed in this context; the part that can't be read is not served")
	f.put("a.yaml", broken)
	f.wantProblem("a.yaml:2: mapping values are not allowed in this context; its last valid content is still used")
	// It stays, however often the file is read.
	f.put("a.yaml", "\n"+broken)
	f.wantProblem("a.yaml:3: mapping values are not allowed in this context; its last valid content is still used")
	f.put("a.yaml", config("a", "1")+broken)
	f.wantProblem("a.yaml:9: mapping values are not allowed in this context; the part that can't be read is not served")
	f.remove("a.yaml")
	f.want("-a")
	f.wantProblem("a.yaml is fine again")
}
