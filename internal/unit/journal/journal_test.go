package journal_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/journal"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

const schema = 7

// inMemory is a directory that does not exist yet, on the tmpfs that Linux has.
func inMemory(t testing.TB) string {
	above, err := os.MkdirTemp("/dev/shm", "headgate-journal-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	return filepath.Join(above, "units")
}

// open opens a journal, and returns what it logs.
func open(t testing.TB, dir string) (*journal.Journal, *bytes.Buffer) {
	var log bytes.Buffer
	j, err := journal.Open(dir, schema, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, &log
}

// reopened is what is there after a restart, and what is logged about it.
func reopened(t testing.TB, dir string) (publish.Cut, string) {
	j, log := open(t, dir)
	defer j.Close()
	return j.Load(), log.String()
}

func add(t testing.TB, j *journal.Journal, cuts ...publish.Cut) {
	for _, cut := range cuts {
		if err := j.Append(cut); err != nil {
			t.Fatal(err)
		}
	}
}

func resource(key unit.Key, text string) wire.Resource {
	return wire.Resource{Key: key, Version: unit.VersionOf([]byte(text), ""), Bytes: []byte(text)}
}

func refers(r wire.Resource) wire.Resource {
	r.Refers = []unit.Key{key}
	return r
}

func cut(resources ...wire.Resource) publish.Cut { return publish.Cut{At: 9, Resources: resources} }

func same(t testing.TB, what string, got publish.Cut, want ...wire.Resource) {
	t.Helper()
	if want == nil {
		want = []wire.Resource{}
	}
	if diff := cmp.Diff(publish.Cut{Resources: want}, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var (
	a, b, key = unit.Host.Key("a.test"), unit.Host.Key("b.test"), unit.Certificate.Key("c0ffee")
	// The states after each of three cuts.
	cuts = []publish.Cut{
		cut(resource(key, "a key"), refers(resource(b, "b, first")), resource(a, "a")),
		{At: 10, Resources: []wire.Resource{resource(b, "b, second")}, Gone: []unit.Key{a, key}},
		cut(resource(a, "a again")),
	}
	states = [][]wire.Resource{
		nil,
		{resource(key, "a key"), resource(a, "a"), resource(b, "b, first")},
		{resource(b, "b, second")},
		{resource(a, "a again"), resource(b, "b, second")},
	}
)

func TestKept(t *testing.T) {
	dir := inMemory(t)
	for i, c := range cuts {
		j, log := open(t, dir)
		same(t, "before a cut", j.Load(), states[i]...)
		add(t, j, c, publish.Cut{})
		same(t, "after a cut", j.Load(), states[i+1]...)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", log)
		}
	}
	for name, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "units"): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// written is a file with the cuts, and its sizes after each of them.
func written(t testing.TB, dir string) (text []byte, sizes []int) {
	j, _ := open(t, dir)
	defer j.Close()
	add(t, j, publish.Cut{})
	for i := range len(cuts) + 1 {
		text, _ = os.ReadFile(filepath.Join(dir, "units"))
		sizes = append(sizes, len(text))
		if i < len(cuts) {
			add(t, j, cuts[i])
		}
	}
	return text, sizes
}

func write(t testing.TB, dir string, text []byte) {
	if err := os.WriteFile(filepath.Join(dir, "units"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnfinished: a process that ends while it writes leaves a beginning of the file, of which whole cuts are used.
func TestUnfinished(t *testing.T) {
	dir := inMemory(t)
	text, sizes := written(t, dir)
	state := 0
	for n := sizes[0]; n <= len(text); n++ {
		write(t, dir, text[:n])
		for state+1 < len(sizes) && n >= sizes[state+1] {
			state++
		}
		j, log := open(t, dir)
		what := fmt.Sprintf("%d of %d bytes", n, len(text))
		same(t, what, j.Load(), states[state]...)
		if whole := n == sizes[state]; whole != (log.Len() == 0) {
			t.Errorf("%s: logged %q", what, log)
		}
		add(t, j, cut(resource(a, "later")))
		want := j.Load()
		j.Close()
		got, logged := reopened(t, dir)
		same(t, what+", and a cut", got, want.Resources...)
		if logged != "" {
			t.Errorf("%s, and a cut: logged %q", what, logged)
		}
	}
}

// TestDamaged: a file with another byte anywhere, or of another schema, gives nothing, rather than what was
// there before the damage.
func TestDamaged(t *testing.T) {
	dir := inMemory(t)
	text, sizes := written(t, dir)
	type damaged struct {
		what string
		text []byte
	}
	list := []damaged{{"nothing", nil}, {"half a header", text[:sizes[0]/2]}, {"something else", bytes.Repeat([]byte{0}, 1000)}, {"more", append(bytes.Clone(text), make([]byte, 100)...)}}
	for i := range text {
		other := bytes.Clone(text)
		other[i] ^= 0x10
		list = append(list, damaged{fmt.Sprintf("byte %d", i), other})
	}
	for _, d := range list {
		write(t, dir, d.text)
		j, log := open(t, dir)
		same(t, d.what, j.Load())
		if !strings.Contains(log.String(), "can't be used") {
			t.Errorf("%s: logged %q", d.what, log)
		}
		add(t, j, cuts[0])
		j.Close()
		got, _ := reopened(t, dir)
		same(t, d.what+", and a cut", got, states[1]...)
	}
}

// survives checks that a restart changes nothing, and that no other file is left.
func survives(t testing.TB, j *journal.Journal, dir string) {
	t.Helper()
	want := j.Load()
	j.Close()
	got, _ := reopened(t, dir)
	same(t, "after a restart", got, want.Resources...)
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("the directory has %v", files)
	}
}

func TestCompaction(t *testing.T) {
	dir := inMemory(t)
	j, _ := open(t, dir)
	add(t, j, cut(resource(a, "stays")))
	name := filepath.Join(dir, "units")
	const size = 300_000
	shrunk, before := 0, int64(0)
	for i := range 50 {
		add(t, j, cut(resource(b, strings.Repeat(string(rune('a'+i%26)), size))))
		info, err := os.Stat(name)
		if err != nil || info.Size() > 2*size+(1<<20)+1000 {
			t.Fatalf("the file has %d bytes, %v", info.Size(), err)
		}
		if info.Size() < before {
			shrunk++
		}
		before = info.Size()
	}
	if shrunk == 0 || shrunk > 15 {
		t.Errorf("compacted %d times", shrunk)
	}
	survives(t, j, dir)
}

// TestNoCompaction: the file goes on if it can't be replaced.
func TestNoCompaction(t *testing.T) {
	dir := inMemory(t)
	j, log := open(t, dir)
	add(t, j, cuts[0])
	// Nothing can be written where there is a directory.
	if err := os.Mkdir(filepath.Join(dir, "units.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		add(t, j, cut(resource(b, strings.Repeat("b", 300_000))))
	}
	if n := strings.Count(log.String(), "no room to compact"); n == 0 || n > 3 {
		t.Errorf("tried %d times: %s", n, log)
	}
	survives(t, j, dir)
}

// limit bounds the sizes of files, as a full directory does: what is written reaches up to there.
func limit(t *testing.T, size uint64) (lift func()) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	lift = func() { syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }
	t.Cleanup(lift)
	return lift
}

// TestFull: a file that can't be extended is replaced if there is room, or else has nothing.
func TestFull(t *testing.T) {
	dir := inMemory(t)
	j, log := open(t, dir)
	long := func(letter string) wire.Resource { return resource(b, strings.Repeat(letter, 40_000)) }
	add(t, j, cut(resource(a, "a"), long("x")), cut(long("y")))
	lift := limit(t, 100_000)
	add(t, j, cut(long("z")))
	if !strings.Contains(log.String(), "replaced") {
		t.Errorf("logged: %s", log)
	}
	more := cut(resource(key, strings.Repeat("k", 80_000)))
	for range 2 {
		if err := j.Append(more); err == nil {
			t.Fatal("written beyond the limit")
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("the directory has %v, %v", files, err)
		}
		if info, err := files[0].Info(); err != nil || info.Name() != "units" || info.Size() != 0 {
			t.Fatalf("left: %v, %v", info, err)
		}
	}
	lift()
	add(t, j, publish.Cut{})
	j.Close()
	got, logged := reopened(t, dir)
	same(t, "after a restart", got, append(more.Resources, resource(a, "a"), long("z"))...)
	if logged != "" {
		t.Errorf("logged: %s", logged)
	}
}

// TestFullAndRestarted: an edge that could not keep what it got has nothing after a restart.
func TestFullAndRestarted(t *testing.T) {
	dir := inMemory(t)
	j, _ := open(t, dir)
	add(t, j, cuts[0])
	lift := limit(t, 1000)
	if err := j.Append(cut(resource(b, strings.Repeat("b", 2000)))); err == nil {
		t.Fatal("written beyond the limit")
	}
	lift()
	j.Close()
	got, logged := reopened(t, dir)
	same(t, "after a restart", got)
	if !strings.Contains(logged, "not complete") {
		t.Errorf("logged: %s", logged)
	}
}

func TestTooLarge(t *testing.T) {
	dir := inMemory(t)
	j, _ := open(t, dir)
	add(t, j, cuts[0])
	if err := j.Append(cut(wire.Resource{Key: unit.Content.Key("x"), Bytes: make([]byte, 64<<20+1)})); err == nil {
		t.Fatal("kept what can't be read again")
	}
	add(t, j, publish.Cut{Gone: []unit.Key{unit.Content.Key("x")}})
	j.Close()
	got, _ := reopened(t, dir)
	same(t, "after a restart", got, states[1]...)
}

func TestOtherSchema(t *testing.T) {
	dir := inMemory(t)
	j, _ := open(t, dir)
	add(t, j, cuts...)
	j.Close()
	var log bytes.Buffer
	j, err := journal.Open(dir, schema+1, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	same(t, "with another schema", j.Load())
	if !strings.Contains(log.String(), "version of Headgate") {
		t.Errorf("logged: %s", &log)
	}
}

// TestRest: what a process left that ended while it replaced the file is removed.
func TestRest(t *testing.T) {
	dir := inMemory(t)
	text, _ := written(t, dir)
	rest := filepath.Join(dir, "units.new")
	if err := os.WriteFile(rest, text[:len(text)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	got, _ := reopened(t, dir)
	same(t, "after a restart", got, states[3]...)
	if _, err := os.Lstat(rest); err == nil {
		t.Error("it is still there")
	}
}

func TestLocked(t *testing.T) {
	dir := inMemory(t)
	j, _ := open(t, dir)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if _, err := journal.Open(dir, schema, log); err == nil || !strings.Contains(err.Error(), "another edge") {
		t.Errorf("opened twice: %v", err)
	}
	j.Close()
	open(t, dir)
}

func TestRefused(t *testing.T) {
	at := func(mode fs.FileMode, uid int) string {
		dir := inMemory(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		// The mode must not depend on the umask.
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if uid >= 0 && os.Geteuid() == 0 {
			if err := os.Chown(dir, uid, -1); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	file := at(0o700, -1) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := at(0o700, -1)
	if err := os.Mkdir(folder+"/units", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, dir, reason string }{
		{"not in memory", "/proc/self", "medium: Memory"},
		{"below what is not in memory", "/proc/headgate", "medium: Memory"},
		{"below nothing", inMemory(t) + "/units", "no such file"},
		{"others may write", at(0o722, -1), "0700"},
		{"a group may read", at(0o750, -1), "0700"},
		{"a volume as it is mounted", at(0o777, -1), "a directory in it"},
		{"a file", file, "not a directory"},
		{"a folder for the file", folder, "not a file"},
	} {
		_, err := journal.Open(c.dir, schema, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err == nil || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if os.Geteuid() == 0 {
		if _, err := journal.Open(at(0o700, 12345), schema, slog.New(slog.NewTextHandler(io.Discard, nil))); err == nil {
			t.Error("opened another user's directory")
		}
	}
	if _, err := os.Stat("/proc/headgate"); err == nil {
		t.Error("created outside of memory")
	}
}
