package feature

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/headgate/headgate/internal/model"
)

// NewContent names bytes that are too many, or too secret, for policies. The
// data plane keeps equal content once, however many routes and hosts have it,
// and shows it to nobody.
func NewContent(bytes []byte) model.Content {
	sum := sha256.Sum256(bytes)
	return model.Content{Name: hex.EncodeToString(sum[:]), Bytes: bytes}
}

// Attach has a route carry content. The result is the name by which a policy
// refers to it, and by which the feature's Lua finds it (units.content).
func Attach(route *model.Route, content model.Content) (name string) {
	route.Contents = append(route.Contents, content)
	return content.Name
}

// FromSecret is what read makes of the Secret that a setting refers to, false
// where SecretOf is. Large Secrets are not read anew for each host that has
// them: what read makes must follow from the data and the key alone.
func FromSecret[T any](r *Reader, s Setting[ObjectName], key string, read func(map[string][]byte) T) (value T, ok bool) {
	data, ok := SecretOf(r, s)
	if !ok {
		return value, false
	}
	if r.objects.Derive == nil {
		return read(data), true
	}
	made := r.objects.Derive(s.Get(r).in(r.origin.Namespace), key, func() any { return read(data) })
	return made.(T), true
}
