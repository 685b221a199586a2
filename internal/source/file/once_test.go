package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/source"
)

// TestRead: a folder is read once as it is when it is watched.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	configMap := func(name string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	for path, text := range map[string]string{
		"b.yaml": configMap("one") + endpointsOf("web", "10.0.0.1"), "a/deep.yml": configMap("one") + configMap("two"),
		"c.json": "{", ".hidden.yaml": configMap("three"), ".git/x.yaml": configMap("four"), "notes.txt": configMap("five"), "empty.yaml": "",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(folder, "a", "loop")); err != nil {
		t.Fatal(err)
	}
	once, err := Read(folder + "/")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range once.Changes {
		if c.Deleted {
			t.Errorf("%v is deleted", c)
		}
		names = append(names, c.Object.GetName())
	}
	if got, want := strings.Join(names, " "), "one two web:0:IPv4"; got != want {
		t.Errorf("objects %q, want %q", got, want)
	}
	for path, want := range map[string]string{
		"b.yaml": "already defined in " + folder + "/a/deep.yml:2", "c.json": "did not find expected", "a/loop": "the folder contains itself by a link, or is nested too deeply",
	} {
		ps := once.Problems[filepath.Join(folder, path)]
		if len(ps) != 1 || !strings.Contains(ps[0].Reason, want) || ps[0].Effect == "" {
			t.Errorf("problems of %s: %v, want %q", path, ps, want)
		}
	}
	if len(once.Problems) != 3 {
		t.Errorf("problems: %v", once.Problems)
	}
	if place, ok := once.Place("configmap/default/one", ""); !ok || place != (Place{filepath.Join(folder, "a/deep.yml"), 2}) {
		t.Errorf("the object that counts stands at %v", place)
	}
}

// TestReadNothing: what can't be read at all is an error.
func TestReadNothing(t *testing.T) {
	for path, want := range map[string]string{"/nowhere": "no such file", os.DevNull: "not a regular file"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestFiles: the files that define an object, none for an unknown object.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
	for _, name := range []string{"b.yaml", "a.yaml"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(service), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	followed, err := New(folder, func(map[string][]Problem) {})
	if err != nil {
		t.Fatal(err)
	}
	delivered := make(chan struct{}, 8)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := followed.Run(ctx, func(context.Context, []source.Change) { delivered <- struct{}{} }); err != nil {
			t.Error(err)
		}
	}()
	<-delivered
	want := []string{filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml")}
	for about, files := range map[string]func(string) []string{"read": read.Files, "followed": followed.Files} {
		if got := files("service/shop/web"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", about, got, want)
		}
		for _, object := range []string{"service/shop/other", "file/a.yaml", "", "secret/shop/web"} {
			if got := files(object); len(got) > 0 {
				t.Errorf("%s: %q is in %v", about, object, got)
			}
		}
	}
	end()
	<-ended
}
