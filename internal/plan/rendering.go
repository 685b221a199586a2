package plan

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// An input is everything that the static files are rendered from.
type input struct {
	environment nginxconf.Environment
	globals     model.Globals
	// profiles are those beside the default one, sorted by name.
	profiles     []model.Profile
	clientHello  bool
	dictionaries nginxconf.Dictionaries
}

// sameSettings compares what does not depend on hosts or on the memory in use.
func (i input) sameSettings(other input) bool {
	return reflect.DeepEqual(i.environment, other.environment) && reflect.DeepEqual(i.globals, other.globals)
}

func (i input) equal(other input) bool {
	return i.clientHello == other.clientHello && slices.Equal(i.profiles, other.profiles) &&
		reflect.DeepEqual(i.dictionaries, other.dictionaries) && i.sameSettings(other)
}

// renderings caches the last two renderings with their inputs. Next makes two: one to
// compare with the current configuration, and the new one. While a reload waits, or
// NGINX rejects the configuration, each change makes both again.
type renderings []rendering

type rendering struct {
	from  input
	files map[string][]byte
}

// files renders an input, unless it was rendered just now.
func (r *renderings) files(from input) (map[string][]byte, error) {
	for _, known := range *r {
		if known.from.equal(from) {
			return known.files, nil
		}
	}
	files, err := nginxconf.Render(from.environment, from.globals, from.profiles, from.clientHello, from.dictionaries)
	if err != nil {
		return nil, err
	}
	*r = append((*r)[max(0, len(*r)-1):], rendering{from, files})
	return files, nil
}

// SameFiles reports whether two configurations have the same files with the
// same bytes.
func SameFiles(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
