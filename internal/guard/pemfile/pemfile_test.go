package pemfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/guard/pemfile"
)

// TestGroup: the last value that could be read is there at any time, and an error is logged once.
func TestGroup(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	parse := func(contents [][]byte) (string, error) {
		if !bytes.Equal(contents[0], contents[1]) {
			return "", errors.New("they do not fit")
		}
		return string(contents[0]), nil
	}
	group := pemfile.New(slog.New(slog.NewTextHandler(&log, nil)), "the pair", "nothing is served", parse, a, b)
	for i, c := range []struct{ a, b, want, logged string }{
		{"", "", "", "no such file"},
		{"", "", "", ""},
		{"1", "", "", "no such file"},
		{"1", "", "", ""},
		{"1", "1", "1", "the pair was read again"},
		{"22", "1", "1", "they do not fit"},
		{"22", "1", "1", ""},
		{"22", "22", "22", "was read again"},
		{strings.Repeat("2", 1<<20+1), "22", "22", "more than"},
		{"22", "", "22", "no such file"},
		{"22", "22", "22", "was read again"},
	} {
		for name, content := range map[string]string{a: c.a, b: c.b} {
			// A new file each time, as kubelets have them.
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if content == "" {
				continue
			}
			if err := errors.Join(os.WriteFile(name+".new", []byte(content), 0o600), os.Rename(name+".new", name)); err != nil {
				t.Fatal(err)
			}
		}
		log.Reset()
		got, err := group.Get()
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d: got %q, %v", i, got, err)
		}
		if err != nil && !strings.HasPrefix(fmt.Sprint(err), "the pair can't be read: ") {
			t.Errorf("%d: the error is %v", i, err)
		}
		if (log.Len() > 0) != (c.logged != "") || !strings.Contains(log.String(), c.logged) {
			t.Errorf("%d: logged %q, want %q", i, log.String(), c.logged)
		}
	}
}
