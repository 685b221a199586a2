package dataplane_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// D4: a reload works after someone removed NGINX's files.
func TestReloadAfterFilesWereRemoved(t *testing.T) {
	g := headgatetest.Start(t, headgatetest.Options{})
	for _, name := range []string{"lua", "tmp", "files"} {
		if err := os.RemoveAll(filepath.Join(g.RunDir.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	g.ApplyReloading(headgatetest.Config("proxy-buffer-size: 12k"))
	for _, name := range []string{"lua/headgate/boot.lua", "tmp/body"} {
		if _, err := os.Stat(filepath.Join(g.RunDir.Path(), name)); err != nil {
			t.Error(err)
		}
	}
}
