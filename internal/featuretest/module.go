package featuretest

import (
	"io/fs"
	"testing/fstest"
)

// Module is the one Lua module of a feature that a test makes up.
func Module(name, source string) fs.FS {
	return fstest.MapFS{name + ".lua": {Data: []byte(source)}}
}
