package featuretest

import (
	"io/fs"
	"testing/fstest"
)

// Module is the one Lua module of a feature that a test makes up.
func Module(name, source string) fs.FS { return Modules(map[string]string{name: source}) }

// Modules are the Lua modules of such a feature by name.
func Modules(sources map[string]string) fs.FS {
	files := fstest.MapFS{}
	for name, source := range sources {
		files[name+".lua"] = &fstest.MapFile{Data: []byte(source)}
	}
	return files
}
