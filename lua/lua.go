// Package lua holds the data plane's Lua modules, to be written out for NGINX.
package lua

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

//go:embed headgate
var modules embed.FS

var moduleFile = regexp.MustCompile(`^[a-z][a-z0-9_]*\.lua$`)

// Files are all modules, those of the features too, by their path below the
// directory that Lua's package path names: of the feature NAME the module NAME
// is headgate.feature.NAME, and each further one headgate.feature.NAME.MODULE. A feature
// that only chooses endpoints has no module NAME but picker.
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
		if f.Lua == nil {
			continue
		}
		if err := addModules(files, f); err != nil {
			return nil, fmt.Errorf("read the Lua modules of feature %s: %w", f.Name, err)
		}
	}
	return files, nil
}

func addModules(files map[string][]byte, f feature.Feature) error {
	entries, err := fs.ReadDir(f.Lua, ".")
	if err != nil {
		return err
	}
	folder := "headgate/feature/" + f.Name
	for _, entry := range entries {
		file := entry.Name()
		if !moduleFile.MatchString(file) {
			return fmt.Errorf("%q is not the name of a Lua module", file)
		}
		path := folder + "/" + file
		if strings.TrimSuffix(file, ".lua") == f.Name {
			path = folder + ".lua"
		}
		if files[path], err = fs.ReadFile(f.Lua, file); err != nil {
			return err
		}
	}
	if files[folder+".lua"] == nil && files[folder+"/picker.lua"] == nil {
		return fmt.Errorf("there is neither %s.lua nor picker.lua", f.Name)
	}
	return nil
}
