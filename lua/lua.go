// Package lua holds the data plane's Lua modules, to be written out for NGINX.
package lua

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/headgate/headgate/internal/feature"
)

//go:embed headgate
var modules embed.FS

// Files are all modules, those of the features too, by their path below the
// directory that Lua's package path names.
func Files(features []feature.Feature) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(modules, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = modules.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded Lua modules: %w", err)
	}
	for _, f := range features {
		if f.Lua != "" {
			files["headgate/feature/"+f.Name+".lua"] = []byte(f.Lua)
		}
	}
	return files, nil
}
