package all_test

import (
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// TestGolden holds each feature to the golden files of its directory: one program for all
// of them, since linking takes longer than the cases.
//
//	go test ./internal/feature/all -run TestGolden/cors -update
func TestGolden(t *testing.T) {
	compared := map[string]bool{}
	for _, f := range all.Features() {
		directory := featuretest.Directory(f)
		if compared[directory] {
			continue // The first of several in a directory has the golden files.
		}
		compared[directory] = true
		t.Run(directory, func(t *testing.T) {
			featuretest.Golden(t, f, filepath.Join("..", directory, "testdata"))
		})
	}
	files, err := filepath.Glob("../*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !compared[filepath.Base(filepath.Dir(filepath.Dir(file)))] {
			t.Errorf("%s belongs to no feature", file)
		}
	}
}
